CREATE SEQUENCE sq; CREATE TYPE comp AS (a int, b text); CREATE DOMAIN dom AS int CHECK (VALUE > 0);
CREATE TABLE t (id bigint DEFAULT nextval('sq'), c comp, d dom, CONSTRAINT con CHECK (id > 0));
CREATE INDEX ix ON t (id); CREATE VIEW vw AS SELECT id FROM t; CREATE MATERIALIZED VIEW mv AS SELECT d FROM t; CREATE FUNCTION fn(int) RETURNS int LANGUAGE sql AS 'select $1';
GRANT SELECT ON vw TO mx_reader; COMMENT ON INDEX ix IS 'ix';
