INSERT INTO t VALUES (1, 'x', 'y');
