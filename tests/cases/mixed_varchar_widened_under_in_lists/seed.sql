INSERT INTO t VALUES (1, 'a', 'a', 1); INSERT INTO p VALUES (1, 'b');
