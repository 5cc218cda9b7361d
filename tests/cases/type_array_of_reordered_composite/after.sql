CREATE TYPE c AS (b text, a int);
CREATE TABLE t (id int PRIMARY KEY, cs c[]);
