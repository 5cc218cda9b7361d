CREATE TYPE addr AS (street text, zip int, gone text);
COMMENT ON COLUMN addr.street IS 'st';
CREATE TABLE t (id int PRIMARY KEY, a addr, many addr[]);
CREATE VIEW v AS SELECT (a).street AS s FROM t;
CREATE FUNCTION f(addr) RETURNS text LANGUAGE sql AS $$ SELECT $1.street $$;
CREATE INDEX ON t (((a).street));
CREATE TYPE wrap AS (inner_a addr, n int);
