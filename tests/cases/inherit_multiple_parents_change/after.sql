CREATE TABLE p (a bigint, CHECK (a > 0)); CREATE TABLE q (b text NOT NULL DEFAULT 'q'); CREATE TABLE r (a int, c int);
CREATE TABLE k (z int, CONSTRAINT p_a_check CHECK (a > 0)) INHERITS (p, q);
CREATE INDEX k_a ON k (a);
CREATE TABLE m (d int DEFAULT 4) INHERITS (r, q);
