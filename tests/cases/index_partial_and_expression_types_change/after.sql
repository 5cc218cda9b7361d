CREATE TABLE t (id int, j jsonb, s varchar(9), n numeric, ts date);
CREATE INDEX a ON t ((j ->> 'k')); CREATE INDEX b ON t (n) WHERE s = 'x'; CREATE UNIQUE INDEX c ON t ((ts + 1)); CREATE INDEX d ON t (n) INCLUDE (s, ts); CREATE INDEX e ON t USING hash (s);
ALTER TABLE t CLUSTER ON d; CREATE STATISTICS st ON n, (lower(s)) FROM t;
