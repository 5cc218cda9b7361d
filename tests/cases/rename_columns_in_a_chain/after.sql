CREATE TYPE comp AS (
  -- pgsluice: renamed from x
  z int, y text);
CREATE TABLE t (id int PRIMARY KEY,
  -- pgsluice: renamed from a
  b int,
  -- pgsluice: renamed from b
  n text, c comp);
CREATE VIEW v AS SELECT b AS a, n AS b, (c).z AS x FROM t;
