INSERT INTO t (id, a) VALUES (1,2);
