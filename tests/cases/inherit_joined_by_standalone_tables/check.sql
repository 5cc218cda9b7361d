SELECT (SELECT array_agg(a)::text FROM a), (SELECT array_agg(b)::text FROM b), (SELECT array_agg(c)::text FROM c), (SELECT array_agg(d)::text FROM d);
