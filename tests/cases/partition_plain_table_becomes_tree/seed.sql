INSERT INTO c (at, v) VALUES ('2024-05-05','a'),('2030-01-01','b');
