CREATE TABLE t (id int PRIMARY KEY, a text CHECK (a ~ '^[0-9]+$'), b int CHECK (b IN (0, 1)) DEFAULT 0, CONSTRAINT pair CHECK (length(a) > b));
CREATE INDEX t_a ON t (length(a)); CREATE UNIQUE INDEX t_b ON t ((b + 1)) WHERE b = 0;
