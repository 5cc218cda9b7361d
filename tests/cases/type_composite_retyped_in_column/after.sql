CREATE TYPE pt AS (x bigint, y numeric(10,2));
CREATE TABLE t (id int PRIMARY KEY, a pt NOT NULL DEFAULT ROW(1, 2)::pt, arr pt[]);
CREATE VIEW v AS SELECT (a).x AS s FROM t;
CREATE FUNCTION f(pt) RETURNS pt LANGUAGE sql AS $$ SELECT $1 $$;
CREATE TYPE e AS ENUM ('q');
