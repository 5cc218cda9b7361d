SELECT id, a, b FROM t;
