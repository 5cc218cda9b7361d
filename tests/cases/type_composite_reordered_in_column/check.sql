SELECT id, (c).a, (c).b, (c).d FROM t UNION ALL SELECT 2, a, b, d FROM typed ORDER BY 1;
