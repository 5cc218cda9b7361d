CREATE SEQUENCE shared;
CREATE TABLE gone (id serial PRIMARY KEY, n int DEFAULT nextval('shared'), s smallserial);
CREATE TABLE stays (id int DEFAULT nextval('gone_id_seq'), gone_id int REFERENCES gone, k bigint DEFAULT nextval('shared'));
CREATE VIEW v AS SELECT g.id, s.k FROM gone g JOIN stays s ON s.gone_id = g.id;
CREATE VIEW w AS SELECT * FROM v;
CREATE FUNCTION f() RETURNS SETOF gone LANGUAGE sql AS 'select * from gone';
CREATE FUNCTION g() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT count(*) FROM w; END;
