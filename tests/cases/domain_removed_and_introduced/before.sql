CREATE DOMAIN email AS text CHECK (VALUE ~ '@');
CREATE TABLE t (id int PRIMARY KEY, e email NOT NULL, n text, amounts numeric[]);
CREATE VIEW v AS SELECT e FROM t;
