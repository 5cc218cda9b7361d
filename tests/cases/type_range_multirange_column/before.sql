CREATE TYPE fr AS RANGE (SUBTYPE = float8);
CREATE TABLE t (id int PRIMARY KEY, m fr_multirange);
