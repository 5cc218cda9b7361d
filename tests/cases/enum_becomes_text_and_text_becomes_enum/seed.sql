INSERT INTO t VALUES (1, 'b', 'a', '{a}', 'b');
