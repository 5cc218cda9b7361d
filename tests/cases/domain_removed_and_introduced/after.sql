CREATE DOMAIN money2 AS numeric(12,2) CHECK (VALUE >= 0);
CREATE DOMAIN short AS text CHECK (length(VALUE) < 10);
CREATE TABLE t (id int PRIMARY KEY, e text NOT NULL, n short, amounts money2[]);
CREATE VIEW v AS SELECT e FROM t;
