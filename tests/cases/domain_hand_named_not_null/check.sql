SELECT id, d::int, ds::text FROM t;
