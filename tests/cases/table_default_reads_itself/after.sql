CREATE SCHEMA s;
CREATE TABLE s.t (id int PRIMARY KEY, n bigint);
CREATE FUNCTION s.nxt() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT coalesce(max(n), 0) + 1 FROM s.t; END;
ALTER TABLE s.t ALTER n SET DEFAULT s.nxt();
CREATE FUNCTION s.ok(s.t) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'select $1.n > 0';
ALTER TABLE s.t ADD CONSTRAINT ok CHECK (s.ok(t.*));
CREATE INDEX t_ok ON s.t (s.ok(t.*));
CREATE TABLE s.u (t int REFERENCES s.t, ts s.t[], c s.t);
