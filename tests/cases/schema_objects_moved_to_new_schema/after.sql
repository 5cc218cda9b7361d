CREATE SCHEMA "new s" AUTHORIZATION mx_owner;
GRANT USAGE ON SCHEMA "new s" TO PUBLIC;
COMMENT ON SCHEMA "new s" IS 'n';
CREATE TYPE "new s".st AS ENUM ('a', 'b');
CREATE FUNCTION "new s".f("new s".st) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT 1 $$;
CREATE VIEW "new s".v AS SELECT "new s".f('a') AS x;
CREATE SEQUENCE "new s".q;
CREATE TABLE t (id int DEFAULT nextval('"new s".q'), s "new s".st DEFAULT 'a', CHECK ("new s".f(s) = 1));
