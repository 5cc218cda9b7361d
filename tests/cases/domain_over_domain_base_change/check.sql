SELECT id, b::int, d::int, h::text, ds::text FROM t;
