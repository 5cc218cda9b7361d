CREATE TABLE t (id int PRIMARY KEY, a text, b int);
CREATE TYPE pair AS (x bigint, y int, z int);
CREATE FUNCTION all_t() RETURNS SETOF t LANGUAGE sql STABLE AS $$ SELECT * FROM t WHERE true $$;
CREATE FUNCTION mk(p pair) RETURNS pair[] LANGUAGE sql AS $$ SELECT ARRAY[p] $$;
CREATE FUNCTION one(p t) RETURNS t LANGUAGE plpgsql AS $$ BEGIN RETURN p; END $$;
CREATE VIEW v AS SELECT id, b FROM all_t();
CREATE VIEW pv AS SELECT (mk(ROW(1,2,3)::pair))[1].x AS x;
