CREATE FUNCTION "Q's"("Arg One" text) RETURNS text LANGUAGE plpgsql AS $body$ BEGIN RETURN $function$a$function$ || "Arg One" || '%'; END $body$;
CREATE FUNCTION esc() RETURNS text LANGUAGE sql AS 'SELECT ''a\\b -- ; é''::text';
COMMENT ON FUNCTION "Q's"(text) IS E'line\nbreak \\ back';
CREATE SCHEMA "Select";
CREATE FUNCTION "Select"."from"() RETURNS int LANGUAGE sql AS 'SELECT 1';
