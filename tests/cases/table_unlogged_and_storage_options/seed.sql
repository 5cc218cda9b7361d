INSERT INTO a (t) VALUES ('x'),('y'); INSERT INTO b (t) VALUES ('z'); INSERT INTO c VALUES ('q');
