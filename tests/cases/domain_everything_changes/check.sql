SELECT id, a::text, b::int, c::text, d::text, arr::text FROM t;
