INSERT INTO t VALUES (1, 2, 'x', ROW(4, 'y'));
