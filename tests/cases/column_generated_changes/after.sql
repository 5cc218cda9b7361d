CREATE FUNCTION twice(int) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'select $1 * 2::bigint';
CREATE TABLE t (id int PRIMARY KEY, a bigint, g1 bigint GENERATED ALWAYS AS (a + 2) STORED, g2 bigint GENERATED ALWAYS AS (twice(id)) STORED UNIQUE, g3 int, p int GENERATED ALWAYS AS (id * 3) STORED);
CREATE VIEW v AS SELECT g1, g2, p FROM t;
CREATE INDEX t_g1 ON t (g1);
COMMENT ON COLUMN t.g1 IS 'one'; GRANT SELECT (g2) ON t TO mx_reader;
