CREATE TABLE keep (id int);
