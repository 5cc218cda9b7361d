SELECT (SELECT array_agg(a)::text FROM a), (SELECT array_agg(b)::text FROM b), (SELECT array_agg(t ORDER BY t) FROM c), (SELECT array_agg(e)::text FROM e);
