CREATE TYPE person AS (id int, name text);
CREATE TABLE p OF person (PRIMARY KEY (id), name NOT NULL DEFAULT 'y');
CREATE TABLE q OF person;
CREATE TABLE r (id int, name text);
CREATE TABLE s OF person (name WITH OPTIONS UNIQUE CHECK (name <> ''));
