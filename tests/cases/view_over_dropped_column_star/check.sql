SELECT id, a, c FROM t;
