CREATE SCHEMA s;
CREATE SEQUENCE s.ids;
CREATE TABLE a (id bigint DEFAULT nextval('s.ids') PRIMARY KEY);
CREATE TABLE b (id bigint DEFAULT nextval('s.ids') PRIMARY KEY);
CREATE FUNCTION nid() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT nextval('s.ids'); END;
CREATE VIEW lastid AS SELECT last_value FROM s.ids;
