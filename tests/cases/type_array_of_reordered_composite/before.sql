CREATE TYPE c AS (a int, b text);
CREATE TABLE t (id int PRIMARY KEY, cs c[]);
