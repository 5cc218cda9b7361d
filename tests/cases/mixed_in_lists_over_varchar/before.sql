CREATE TABLE t (id int PRIMARY KEY, kind varchar(20), tags varchar[]);
CREATE VIEW v AS SELECT id FROM t;
