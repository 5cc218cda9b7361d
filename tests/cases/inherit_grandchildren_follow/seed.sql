INSERT INTO g (a,b,c,d,e) VALUES (1,2,3,4,5); INSERT INTO p (a) VALUES (7);
