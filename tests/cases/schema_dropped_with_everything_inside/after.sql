CREATE SCHEMA keep;
CREATE TABLE keep.u (id int, e text, n text);
CREATE VIEW keep.v AS SELECT u.id FROM keep.u;
CREATE PUBLICATION p FOR TABLES IN SCHEMA keep;
