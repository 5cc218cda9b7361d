-- pgsluice: renamed from e
CREATE TABLE f (id int NOT NULL, k int,
  -- pgsluice: renamed from v
  val text NOT NULL, PRIMARY KEY (id, k), CHECK (id > 0)) PARTITION BY LIST (k);
-- pgsluice: renamed from e_one
CREATE TABLE f_one PARTITION OF f FOR VALUES IN (1);
CREATE TABLE e_two PARTITION OF f FOR VALUES IN (2);
CREATE INDEX ON f (val);
CREATE TABLE r (id int, k int, FOREIGN KEY (id, k) REFERENCES f);
