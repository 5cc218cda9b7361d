CREATE TABLE t (id int PRIMARY KEY, a int, b text, c jsonb, d tsvector, e int4range, f text);
CREATE INDEX i1 ON t (a DESC); CREATE INDEX i2 ON t (b text_pattern_ops); CREATE INDEX i3 ON t (b); CREATE INDEX i4 ON t USING gin (c jsonb_path_ops) WITH (fastupdate=off); CREATE INDEX i5 ON t USING spgist (e);
CREATE UNIQUE INDEX i6 ON t (a, b) NULLS NOT DISTINCT; CREATE INDEX i7 ON t USING brin (a) WITH (pages_per_range=16, autosummarize=on); CREATE INDEX i8 ON t (lower(b), (a + 1)); ALTER INDEX i8 ALTER COLUMN 1 SET STATISTICS 98; CREATE INDEX i9 ON t (a) INCLUDE (f) WHERE b IS NOT NULL;
COMMENT ON INDEX i1 IS 'uno'; COMMENT ON INDEX t_pkey IS 'PK';
