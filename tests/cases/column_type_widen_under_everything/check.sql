SELECT t.id, a, v, n, g FROM t ORDER BY 1;
