CREATE FUNCTION ok(bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'select $1 > 1';
CREATE TABLE t (a int CHECK (ok(a)), b int, c int DEFAULT 4, CONSTRAINT row_ok CHECK (t IS NOT NULL));
CREATE INDEX i ON t (ok(b));
