INSERT INTO kid VALUES (1, 'a', 2); INSERT INTO kid2 VALUES (2, 'b', 3); INSERT INTO p VALUES (1, 'c'), (12, 'b');
