INSERT INTO t (id, tenant, a, b) VALUES (1,1,1,2),(2,2,3,4);
