CREATE TABLE t (a int NOT NULL DEFAULT 3, b int, c int, d int NOT NULL, e text NOT NULL DEFAULT 'x', PRIMARY KEY (a, b), UNIQUE (d));
CREATE TABLE u (a int NOT NULL REFERENCES t (d));
