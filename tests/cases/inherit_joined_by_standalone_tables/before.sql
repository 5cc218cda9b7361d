CREATE TABLE p (id int NOT NULL, CONSTRAINT pos CHECK (id > 0));
CREATE TABLE a (id int, x text);
CREATE TABLE b (id int, x text);
CREATE TABLE c () INHERITS (p);
CREATE TABLE d (id int) INHERITS (p);
