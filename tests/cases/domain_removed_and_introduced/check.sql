SELECT id, e::text, n::text, amounts::float8[] FROM t;
