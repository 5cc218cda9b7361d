INSERT INTO t (id, s, arr) VALUES (1, 'b', '{a,b}'), (2, 'a', NULL); INSERT INTO ref VALUES ('b', 1); INSERT INTO p VALUES ('b', 1), ('a', 2);
