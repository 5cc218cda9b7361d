INSERT INTO t (id, a) VALUES (1, 10), (2, 20);
