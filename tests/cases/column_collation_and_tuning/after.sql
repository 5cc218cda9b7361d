CREATE COLLATION mine (provider = libc, locale = 'POSIX');
CREATE TABLE t (a text COLLATE mine, b text COLLATE mine, c text, d text, e int);
ALTER TABLE t ALTER e SET STATISTICS 0, ALTER e SET (n_distinct_inherited=5);
CREATE INDEX t_a ON t (a); CREATE INDEX t_c ON t (c COLLATE mine);
CREATE VIEW v AS SELECT a, c FROM t;
