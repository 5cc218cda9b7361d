CREATE TABLE t (id int PRIMARY KEY, a int CHECK (a >= 0), b boolean DEFAULT false, CONSTRAINT pair CHECK (a > 0));
CREATE INDEX t_a ON t ((a + 1)); CREATE UNIQUE INDEX t_b ON t ((NOT b)) WHERE b;
