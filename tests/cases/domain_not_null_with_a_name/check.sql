SELECT id, d::int, e::int, f::int FROM t;
