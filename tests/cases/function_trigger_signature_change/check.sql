SELECT id, n FROM t;
