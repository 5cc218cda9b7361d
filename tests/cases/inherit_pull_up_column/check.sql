SELECT (SELECT array_agg(ROW(k.id, k.name, k.extra))::text FROM k), (SELECT array_agg(ROW(k2.id, k2.name))::text FROM k2), (SELECT array_agg(id ORDER BY id) FROM p);
