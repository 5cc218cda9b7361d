CREATE FUNCTION ok(v text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT v <> 'bad' $$;
CREATE FUNCTION dflt() RETURNS varchar LANGUAGE sql AS $$ SELECT 'y'::varchar $$;
CREATE DOMAIN d AS text DEFAULT dflt() CONSTRAINT good CHECK (ok(VALUE));
CREATE TABLE t (id int PRIMARY KEY, d d);
