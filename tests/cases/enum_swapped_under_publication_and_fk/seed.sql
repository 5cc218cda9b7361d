INSERT INTO a VALUES ('x', 1), ('y', 2); INSERT INTO b VALUES (1, 'x', 'y'), (2, 'y', NULL);
