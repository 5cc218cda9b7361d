CREATE SCHEMA old;
CREATE TYPE old.mood AS ENUM ('a', 'b');
CREATE TABLE old.t (id serial PRIMARY KEY, m old.mood DEFAULT 'a' NOT NULL);
CREATE TABLE old.u (id int REFERENCES old.t);
CREATE VIEW old.v AS SELECT * FROM old.t WHERE m = 'a';
CREATE FUNCTION old.f(old.mood) RETURNS old.mood LANGUAGE sql AS 'select $1';
GRANT USAGE ON SCHEMA old TO mx_reader; GRANT SELECT ON old.v TO mx_reader;
CREATE TABLE keep (t int REFERENCES old.t, m old.mood);
