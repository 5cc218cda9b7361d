CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE FUNCTION nxt() RETURNS int LANGUAGE sql IMMUTABLE AS 'select 7';
CREATE TABLE other (id int PRIMARY KEY);
CREATE SEQUENCE sq;
CREATE TABLE t (id int PRIMARY KEY, d posint DEFAULT 1 NOT NULL, m mood DEFAULT 'ok' NOT NULL, o int DEFAULT nxt() NOT NULL,
  r int REFERENCES other, g int GENERATED ALWAYS AS (id * 2) STORED, i bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  s serial, n int DEFAULT nextval('sq') NOT NULL, ts timestamptz DEFAULT now() NOT NULL, arr mood[] DEFAULT '{sad}' NOT NULL, c text COLLATE "POSIX");
CREATE VIEW v AS SELECT * FROM t;
