CREATE TABLE t (id bigint PRIMARY KEY, a varchar(20), b int);
CREATE TABLE audit (id bigint, what text);
CREATE FUNCTION get(p int) RETURNS text LANGUAGE sql STABLE BEGIN ATOMIC SELECT a || b FROM t WHERE id = p; END;
CREATE FUNCTION twice(p int) RETURNS text LANGUAGE sql STABLE BEGIN ATOMIC SELECT get(p) || get(p); END;
CREATE PROCEDURE log(p int) LANGUAGE sql BEGIN ATOMIC INSERT INTO audit VALUES (p, get(p)); UPDATE t SET a = 'x' WHERE id = p; END;
CREATE FUNCTION ret(p int) RETURNS text LANGUAGE sql STABLE RETURN get(p);
CREATE VIEW v AS SELECT twice(1) AS tw FROM t;
