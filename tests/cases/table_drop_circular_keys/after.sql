CREATE TABLE c (id int PRIMARY KEY, a int);
