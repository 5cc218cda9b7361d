CREATE TYPE e AS ENUM ('a', 'b');
CREATE TABLE t (id int PRIMARY KEY, kind varchar(20) NOT NULL DEFAULT 'a' CONSTRAINT known CHECK (kind IN ('a', 'b')), e e, n int CHECK (n IN (1, 2)), CHECK (e IN ('a', 'b')));
CREATE INDEX t_k ON t (id) WHERE kind IN ('a', 'b');
CREATE UNIQUE INDEX t_u ON t (kind, id);
CREATE TABLE p (id int, kind varchar(5) CHECK (kind IN ('a', 'b'))) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (9);
CREATE INDEX p_k ON p (id) WHERE kind IN ('a', 'b');
CREATE VIEW v AS SELECT id FROM t WHERE kind IN ('a', 'b');
