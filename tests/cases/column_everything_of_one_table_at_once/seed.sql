INSERT INTO t (a, d) VALUES ('x', 'q'), ('y', 'r'); INSERT INTO k VALUES (1, 'q');
