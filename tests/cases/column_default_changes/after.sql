CREATE FUNCTION f(x int DEFAULT 2) RETURNS int LANGUAGE sql AS 'select 1';
CREATE SEQUENCE s2;
CREATE TABLE t (a int DEFAULT 2, b text, c int DEFAULT f(3), d int DEFAULT nextval('s2'), e timestamptz DEFAULT clock_timestamp(), g int DEFAULT f(), h text DEFAULT 'n''\q', i int DEFAULT 3);
CREATE VIEW v AS SELECT * FROM t; ALTER VIEW v ALTER b SET DEFAULT 'q';
