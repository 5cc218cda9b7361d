CREATE TYPE comp AS (x int, y text);
CREATE TABLE t (id int PRIMARY KEY, a int, b text, c comp);
CREATE VIEW v AS SELECT a, b, (c).x FROM t;
