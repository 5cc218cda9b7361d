CREATE TYPE fr AS RANGE (SUBTYPE = float8, SUBTYPE_DIFF = float8mi);
CREATE TABLE t (id int PRIMARY KEY, m fr_multirange);
