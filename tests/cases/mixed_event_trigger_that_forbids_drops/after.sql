CREATE SCHEMA ops;
CREATE TABLE t (id int PRIMARY KEY, a text);
CREATE FUNCTION ops.forbid() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no drops here'; END $$;
CREATE EVENT TRIGGER forbid ON sql_drop EXECUTE FUNCTION ops.forbid();
COMMENT ON EVENT TRIGGER forbid IS 'nothing goes';
CREATE TABLE u (id int);
