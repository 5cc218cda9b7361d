SELECT id, a::text, b::int FROM t;
