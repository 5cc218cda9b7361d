CREATE TABLE t (id int PRIMARY KEY, a text, b int DEFAULT 4);
CREATE FUNCTION label(t) RETURNS varchar LANGUAGE sql IMMUTABLE AS $$ SELECT ($1.a || $1.b)::varchar $$;
CREATE VIEW v AS SELECT id, label(t.*) AS l, b FROM t;
CREATE VIEW vv AS SELECT v.id, (v.*)::text AS whole FROM v;
