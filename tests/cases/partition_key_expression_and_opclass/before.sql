CREATE TABLE a (x int);
