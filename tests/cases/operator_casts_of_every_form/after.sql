CREATE TYPE pt AS (x int, y int, z int);
CREATE TYPE e AS ENUM ('a', 'b');
CREATE FUNCTION pt_text(pt) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1.y::text $$;
CREATE FUNCTION text_pt(text) RETURNS pt LANGUAGE sql IMMUTABLE AS $$ SELECT ROW(1, 2, 3)::pt $$;
CREATE CAST (pt AS text) WITH FUNCTION pt_text(pt) AS IMPLICIT;
CREATE CAST (varchar AS e) WITH INOUT AS ASSIGNMENT;
CREATE TABLE t (p pt, s text);
CREATE VIEW v AS SELECT p::text AS pt FROM t;
COMMENT ON CAST (pt AS text) IS 'd';
