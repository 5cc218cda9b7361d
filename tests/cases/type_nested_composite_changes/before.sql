CREATE TYPE e AS ENUM ('a', 'b');
CREATE TYPE inner_c AS (x int, e e);
CREATE TYPE outer_c AS (i inner_c, note text, is_on boolean);
CREATE TABLE t (id int PRIMARY KEY, o outer_c);
CREATE VIEW v AS SELECT ((o).i).x AS x FROM t;
