INSERT INTO t VALUES (1, 'a', 'g');
