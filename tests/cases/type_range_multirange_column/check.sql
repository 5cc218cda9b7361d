SELECT id, m::text FROM t;
