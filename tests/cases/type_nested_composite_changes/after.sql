CREATE TYPE e AS ENUM ('b', 'a', 'c');
CREATE TYPE inner_c AS (e e, x bigint);
CREATE TYPE outer_c AS (note varchar(50), i inner_c, extra int);
CREATE TABLE t (id int PRIMARY KEY, o outer_c);
CREATE VIEW v AS SELECT ((o).i).x AS x FROM t;
