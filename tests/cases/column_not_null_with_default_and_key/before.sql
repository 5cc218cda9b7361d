CREATE TABLE t (a int, b int, c int NOT NULL, d int PRIMARY KEY);
CREATE TABLE u (a int REFERENCES t);
