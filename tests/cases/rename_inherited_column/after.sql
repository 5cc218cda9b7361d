CREATE TABLE p (id int PRIMARY KEY,
  -- pgsluice: renamed from a
  amount int NOT NULL);
CREATE TABLE k (z int, CHECK (amount > 0)) INHERITS (p);
CREATE VIEW v AS SELECT amount AS a FROM k;
