CREATE FUNCTION "Q's"("Arg One" text) RETURNS text LANGUAGE plpgsql AS $body$ BEGIN RETURN $$a$$ || "Arg One"; END $body$;
CREATE FUNCTION esc() RETURNS text LANGUAGE sql AS 'SELECT ''a\b''::text';
