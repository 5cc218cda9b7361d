CREATE TABLE base (id int);
