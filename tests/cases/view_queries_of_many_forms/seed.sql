INSERT INTO t VALUES (1, 1, 'a', 1.5, '2024-01-01', '{x}', '{}');
