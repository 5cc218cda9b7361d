SELECT id, s::text, arr::text, g FROM t UNION ALL SELECT id, s::text, tableoid::regclass::text, NULL FROM p ORDER BY 1, 2, 3;
