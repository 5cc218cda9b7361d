INSERT INTO e SELECT i, 1, 'x' || i FROM generate_series(1, 9) i;
