CREATE TABLE t (a bigint, b int, c int, d int);
GRANT SELECT (a, d), REFERENCES (b) ON t TO mx_reader; GRANT INSERT (c) ON t TO mx_app; COMMENT ON COLUMN t.b IS 'y'; COMMENT ON COLUMN t.d IS 'z';
GRANT SELECT (d) ON t TO PUBLIC;
