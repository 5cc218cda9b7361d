SELECT id, a::text, b::text, c::text, d::text, e::text, f::text FROM t;
