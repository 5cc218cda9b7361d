SELECT id, tenant, b FROM t ORDER BY 1;
