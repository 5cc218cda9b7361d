CREATE TYPE e AS ENUM ('a', 'b');
CREATE TABLE t (id int PRIMARY KEY, x e NOT NULL DEFAULT 'a', y text NOT NULL DEFAULT 'a', z e[], w text CHECK (w IN ('a', 'b')));
CREATE INDEX ON t (x);
CREATE VIEW v AS SELECT x, y FROM t WHERE x = 'a';
