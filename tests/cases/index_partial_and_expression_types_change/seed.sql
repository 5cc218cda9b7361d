INSERT INTO t VALUES (1, '{"k":1}', 'x', 4, '2024-01-01');
