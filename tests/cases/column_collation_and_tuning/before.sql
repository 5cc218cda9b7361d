CREATE COLLATION mine (provider = libc, locale = 'C');
CREATE TABLE t (a text COLLATE mine, b text, c text COLLATE "C", d text COMPRESSION pglz, e int);
ALTER TABLE t ALTER d SET STORAGE EXTERNAL, ALTER e SET STATISTICS 77, ALTER e SET (n_distinct=5);
CREATE INDEX t_a ON t (a); CREATE INDEX t_c ON t (c COLLATE mine);
CREATE VIEW v AS SELECT a, c FROM t;
