SELECT (SELECT array_agg(e1)::text FROM e1), (SELECT array_agg(e2)::text FROM e2), (SELECT array_agg(p)::text FROM p);
