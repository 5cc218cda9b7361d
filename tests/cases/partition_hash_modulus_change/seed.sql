INSERT INTO e (v) SELECT 'v' || i FROM generate_series(1, 20) i;
