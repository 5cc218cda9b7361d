SELECT id, s::text FROM base UNION ALL SELECT id, s::text FROM p ORDER BY 1, 2;
