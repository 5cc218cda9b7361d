INSERT INTO t VALUES (1, 'a', ROW('b', 3), ARRAY[ROW('a', 1)::c], ROW(ROW('a', 4)::c, '{a,b}'));
