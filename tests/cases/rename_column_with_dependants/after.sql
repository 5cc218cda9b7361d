CREATE TABLE t (
  -- pgsluice: renamed from id
  key int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- pgsluice: renamed from a
  amount bigint NOT NULL UNIQUE CHECK (amount > 0),
  b int GENERATED ALWAYS AS (amount + 1) STORED,
  -- pgsluice: renamed from c
  counter serial
);
CREATE INDEX ON t (amount, counter);
CREATE TABLE u (a bigint REFERENCES t (amount));
CREATE VIEW v AS SELECT amount AS a, b FROM t;
CREATE FUNCTION f() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT sum(amount) FROM t; END;
COMMENT ON COLUMN t.amount IS 'a'; GRANT UPDATE (amount) ON t TO mx_app;
