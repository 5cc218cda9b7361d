CREATE TYPE st AS ENUM ('a', 'b', 'c', 'd', 'it''s', 'Ü');
CREATE DOMAIN std AS st CHECK (VALUE <> 'd'::st);
CREATE TYPE comp AS (s st, ss st[]);
CREATE TABLE t (id int PRIMARY KEY, s st NOT NULL DEFAULT 'b', arr st[] DEFAULT '{b}', sd std, c comp, UNIQUE (s, id));
CREATE TABLE p (s st, id int, PRIMARY KEY (s, id)) PARTITION BY LIST (s);
CREATE TABLE p_b PARTITION OF p FOR VALUES IN ('b');
CREATE INDEX ON t (s) WHERE s = 'b';
CREATE VIEW v AS SELECT s, count(*) AS n FROM t WHERE s = 'b' GROUP BY s;
CREATE FUNCTION f(x st DEFAULT 'b') RETURNS st LANGUAGE sql AS $$ SELECT x $$;
