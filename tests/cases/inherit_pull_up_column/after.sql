CREATE TABLE p (id int NOT NULL, name text DEFAULT 'x');
CREATE TABLE k (extra int) INHERITS (p);
CREATE TABLE k2 (name text DEFAULT 'x') INHERITS (p);
CREATE VIEW v AS SELECT name FROM k;
