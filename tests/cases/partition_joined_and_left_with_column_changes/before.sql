CREATE TABLE e (id int NOT NULL, k int, v text) PARTITION BY LIST (k);
CREATE TABLE e1 PARTITION OF e FOR VALUES IN (1);
CREATE TABLE e2 (id int NOT NULL, k int, v text, n int DEFAULT 4);
CREATE TABLE e3 (id int, k int);
CREATE TABLE e4 (id bigint, k int, v text);
