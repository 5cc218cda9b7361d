SELECT id::int, n FROM t;
