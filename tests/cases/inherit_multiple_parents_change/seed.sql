INSERT INTO k (a, b, z) VALUES (1,'x',2);
