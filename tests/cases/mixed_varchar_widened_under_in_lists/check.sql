SELECT t.id, t.kind::text, e::text, n::int, p.kind::text FROM t, p;
