SELECT id, a, b, c FROM t;
