SELECT id::int, kind::text, n::float8, tags, doc FROM t;
