CREATE TABLE t (id int PRIMARY KEY, a int, b text, c jsonb, d tsvector, e int4range, f text);
CREATE INDEX i1 ON t (a); CREATE INDEX i2 ON t (b); CREATE INDEX i3 ON t USING hash (b); CREATE INDEX i4 ON t USING gin (c); CREATE INDEX i5 ON t USING gist (e);
CREATE UNIQUE INDEX i6 ON t (a, b); CREATE INDEX i7 ON t USING brin (a) WITH (pages_per_range=8); CREATE INDEX i8 ON t (lower(b), (a + 1)); ALTER INDEX i8 ALTER COLUMN 2 SET STATISTICS 99; CREATE INDEX i9 ON t (a) WHERE b IS NULL;
COMMENT ON INDEX i1 IS 'one'; COMMENT ON INDEX t_pkey IS 'pk';
