SELECT id, d::text FROM t;
