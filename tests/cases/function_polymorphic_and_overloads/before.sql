CREATE FUNCTION first(anyarray) RETURNS anyelement LANGUAGE sql IMMUTABLE AS $$ SELECT $1[1] $$;
CREATE FUNCTION pick(a anycompatible, b anycompatible) RETURNS anycompatible LANGUAGE sql AS $$ SELECT a $$;
CREATE FUNCTION ov(int) RETURNS text LANGUAGE sql AS $$ SELECT 'int' $$;
CREATE FUNCTION ov(text) RETURNS text LANGUAGE sql AS $$ SELECT 'text' $$;
CREATE FUNCTION ov(int, int) RETURNS text LANGUAGE sql AS $$ SELECT 'two' $$;
CREATE VIEW v AS SELECT ov(1) AS a, ov('x'::text) AS b, first(ARRAY[1,2]) AS f;
COMMENT ON FUNCTION ov(text) IS 't';
