CREATE TYPE person AS (id int, name text);
CREATE TABLE p OF person (PRIMARY KEY (id), name DEFAULT 'x');
CREATE TABLE q (id int, name text);
CREATE TABLE r OF person;
