CREATE TABLE t (a int, b int, c int);
GRANT SELECT (a), UPDATE (b) ON t TO mx_reader; GRANT INSERT (c) ON t TO mx_app WITH GRANT OPTION; COMMENT ON COLUMN t.a IS 'x';
