INSERT INTO a VALUES (1, 'new');
INSERT INTO b VALUES (1, 'new'), (2, 'done');
