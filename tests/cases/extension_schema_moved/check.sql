SELECT id, h::text FROM t;
