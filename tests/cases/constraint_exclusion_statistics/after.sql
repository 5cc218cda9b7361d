CREATE TABLE t (lo int, hi int, CONSTRAINT x EXCLUDE USING gist (int4range(lo, hi) WITH &&));
ALTER INDEX x ALTER COLUMN 1 SET STATISTICS 7;
CREATE TABLE u (lo int, hi int, CONSTRAINT y EXCLUDE USING gist (int4range(lo, hi) WITH &&));
