SELECT (SELECT array_agg(id ORDER BY id) FROM a), (SELECT array_agg(id) FROM b);
