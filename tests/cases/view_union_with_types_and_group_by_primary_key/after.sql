CREATE TABLE t (id bigint, a varchar(40), b text, CONSTRAINT t_key PRIMARY KEY (id));
CREATE VIEW g AS SELECT id, a, count(*) AS n FROM t GROUP BY id;
CREATE VIEW u AS SELECT a FROM t UNION SELECT b FROM t;
