INSERT INTO t VALUES (1, 2, 3, ROW(4, 5), '{6}');
