CREATE TYPE addr AS (street text, zip int, city text);
COMMENT ON COLUMN addr.street IS 'street';
COMMENT ON COLUMN addr.city IS 'city';
CREATE TABLE t (id int PRIMARY KEY, a addr, many addr[]);
CREATE VIEW v AS SELECT (a).street AS s, (a).city AS c FROM t;
CREATE FUNCTION f(addr) RETURNS text LANGUAGE sql AS $$ SELECT $1.street || $1.city $$;
CREATE INDEX ON t (((a).street));
CREATE TYPE wrap AS (inner_a addr, n int);
