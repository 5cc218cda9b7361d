-- pgsluice: renamed from old
CREATE SCHEMA fresh;
CREATE TYPE fresh.mood AS ENUM ('a', 'b');
CREATE TABLE fresh.t (id serial PRIMARY KEY, m fresh.mood DEFAULT 'a' NOT NULL, n int);
CREATE TABLE fresh.u (id int REFERENCES fresh.t ON DELETE CASCADE);
CREATE VIEW fresh.v AS SELECT id, m FROM fresh.t WHERE m = 'a';
CREATE FUNCTION fresh.f(fresh.mood) RETURNS fresh.mood LANGUAGE sql AS 'select $1';
GRANT USAGE ON SCHEMA fresh TO mx_reader; GRANT SELECT ON fresh.v TO mx_reader;
CREATE TABLE keep (t int REFERENCES fresh.t, m fresh.mood);
