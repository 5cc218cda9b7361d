CREATE TYPE c AS (b text, a int, e text, d date);
CREATE TABLE t (id int PRIMARY KEY, c c);
CREATE TABLE typed OF c (PRIMARY KEY (a));
