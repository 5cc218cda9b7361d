CREATE FUNCTION first(anyarray) RETURNS anyelement LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT $1[1] $$;
CREATE FUNCTION pick(a anycompatible, b anycompatible DEFAULT NULL::int) RETURNS anycompatible LANGUAGE sql AS $$ SELECT b $$;
CREATE FUNCTION ov(bigint) RETURNS text LANGUAGE sql AS $$ SELECT 'int' $$;
CREATE FUNCTION ov(text) RETURNS varchar LANGUAGE sql AS $$ SELECT 'text'::varchar $$;
CREATE FUNCTION ov(int, text) RETURNS text LANGUAGE sql AS $$ SELECT 'two' $$;
CREATE VIEW v AS SELECT ov(1) AS a, ov('x'::text) AS b, first(ARRAY[1,2]) AS f;
COMMENT ON FUNCTION ov(text) IS 't';
