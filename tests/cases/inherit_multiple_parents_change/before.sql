CREATE TABLE p (a int); CREATE TABLE q (b text); CREATE TABLE r (a int, c int);
CREATE TABLE k (z int) INHERITS (p, q);
CREATE INDEX k_a ON k (a);
