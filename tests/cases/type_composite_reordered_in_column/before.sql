CREATE TYPE c AS (a int, b text, d date);
CREATE TABLE t (id int PRIMARY KEY, c c);
CREATE TABLE typed OF c (PRIMARY KEY (a));
