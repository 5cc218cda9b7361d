SELECT id, s::text FROM t;
