SELECT id, a::int, b, c::text FROM t;
