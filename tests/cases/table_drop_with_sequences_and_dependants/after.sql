CREATE SEQUENCE shared;
CREATE SEQUENCE gone_id_seq AS integer;
CREATE TABLE stays (id int DEFAULT nextval('gone_id_seq'), gone_id int, k bigint DEFAULT nextval('shared'));
CREATE VIEW v AS SELECT s.k FROM stays s;
CREATE VIEW w AS SELECT * FROM v;
CREATE FUNCTION g() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT count(*) FROM w; END;
