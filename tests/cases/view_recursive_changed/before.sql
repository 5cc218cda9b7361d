CREATE TABLE nodes (id int PRIMARY KEY, parent int REFERENCES nodes, name text);
CREATE RECURSIVE VIEW tree (id, depth) AS
  SELECT id, 0 FROM nodes WHERE parent IS NULL
  UNION ALL SELECT n.id, t.depth + 1 FROM nodes n JOIN tree t ON n.parent = t.id;
COMMENT ON VIEW tree IS 'all';
CREATE VIEW deep AS SELECT id FROM tree WHERE depth > 3;
GRANT SELECT ON tree, deep TO mx_reader;
