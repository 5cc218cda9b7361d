CREATE TYPE e AS ENUM ('b', 'a');
CREATE DOMAIN ed AS e DEFAULT 'a' NOT NULL CHECK (VALUE <> 'b');
CREATE TYPE c AS (x e, y int);
CREATE TYPE cc AS (inner_c c, es e[]);
CREATE TABLE t (id int PRIMARY KEY, d ed, cs c, many c[], deep cc);
CREATE VIEW v AS SELECT (cs).x AS x, d FROM t;
CREATE FUNCTION f(ed) RETURNS c LANGUAGE sql AS $$ SELECT ROW($1, 1)::c $$;
COMMENT ON DOMAIN ed IS 'dom';
GRANT USAGE ON TYPE ed TO mx_app;
