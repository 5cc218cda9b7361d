INSERT INTO t VALUES (1, 'b', '{b,d}', 'b', ROW('b', '{d}')); INSERT INTO p VALUES ('b', 1);
