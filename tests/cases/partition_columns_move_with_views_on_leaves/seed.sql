INSERT INTO e VALUES (1,1,'a','x'),(2,2,'b','y'); INSERT INTO r VALUES ('x');
