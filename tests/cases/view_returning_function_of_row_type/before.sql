CREATE TABLE t (id int PRIMARY KEY, a text);
CREATE FUNCTION label(t) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1.a $$;
CREATE VIEW v AS SELECT id, label(t.*) AS l FROM t;
CREATE VIEW vv AS SELECT v.id, (v.*)::text AS whole FROM v;
