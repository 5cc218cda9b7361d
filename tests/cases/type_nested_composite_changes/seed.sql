INSERT INTO t VALUES (1, ROW(ROW(3, 'b')::inner_c, 'n, "q"', true)), (2, NULL), (3, ROW(NULL, 'z', NULL));
