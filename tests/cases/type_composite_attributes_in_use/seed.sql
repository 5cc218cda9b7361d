INSERT INTO t VALUES (1, ROW('s', 1, 'g'), ARRAY[ROW('x', 2, 'g')::addr]);
