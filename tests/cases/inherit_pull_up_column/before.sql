CREATE TABLE p (id int NOT NULL);
CREATE TABLE k (name text DEFAULT 'x', extra int) INHERITS (p);
CREATE TABLE k2 (name text DEFAULT 'x') INHERITS (p);
CREATE VIEW v AS SELECT name FROM k;
