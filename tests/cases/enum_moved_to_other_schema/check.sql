SELECT id, x::text FROM t;
