SELECT id, a FROM t;
