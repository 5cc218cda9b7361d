CREATE TYPE f AS ENUM ('a', 'b', 'c');
CREATE TABLE t (id int PRIMARY KEY, x text NOT NULL DEFAULT 'a', y f NOT NULL DEFAULT 'a', z text[], w f);
CREATE INDEX ON t (x);
CREATE VIEW v AS SELECT x, y FROM t WHERE x = 'a';
