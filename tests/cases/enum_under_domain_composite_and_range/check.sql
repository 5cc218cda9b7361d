SELECT id, d::text, cs::text, many::text, deep::text FROM t;
