INSERT INTO t (id, body) VALUES (1, 'the cat');
