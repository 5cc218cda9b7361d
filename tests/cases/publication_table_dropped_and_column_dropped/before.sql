CREATE TABLE t (id int PRIMARY KEY, a text, b int);
CREATE TABLE gone (id int PRIMARY KEY);
CREATE PUBLICATION one FOR TABLE t (id, a, b), gone;
CREATE PUBLICATION only_gone FOR TABLE gone;
