CREATE SCHEMA a; CREATE SCHEMA b;
-- pgsluice: renamed from a
CREATE TABLE b.t (id serial PRIMARY KEY, x text NOT NULL);
CREATE TABLE a.u (id int REFERENCES b.t);
CREATE VIEW a.v AS SELECT x FROM b.t;
