CREATE FUNCTION ok(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'select $1 > 0';
CREATE TABLE t (a int CHECK (ok(a)), b int, CONSTRAINT row_ok CHECK (t IS NOT NULL));
CREATE INDEX i ON t (ok(b));
