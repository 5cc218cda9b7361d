-- pgsluice: renamed from sq
CREATE SEQUENCE sq2;
-- pgsluice: renamed from comp
CREATE TYPE comp2 AS (a int, b text);
-- pgsluice: renamed from dom
CREATE DOMAIN dom2 AS int CHECK (VALUE > 0);
CREATE TABLE t (id bigint DEFAULT nextval('sq2'), c comp2, d dom2, CONSTRAINT con2 CHECK (id > 0));
-- pgsluice: renamed from ix
CREATE INDEX ix2 ON t (id);
-- pgsluice: renamed from vw
CREATE VIEW vw2 AS SELECT id FROM t;
-- pgsluice: renamed from mv
CREATE MATERIALIZED VIEW mv2 AS SELECT d FROM t;
-- pgsluice: renamed from fn
CREATE FUNCTION fn2(int) RETURNS int LANGUAGE sql AS 'select $1';
GRANT SELECT ON vw2 TO mx_reader; COMMENT ON INDEX ix2 IS 'ix';
