INSERT INTO t VALUES ('a','b','c','d',1);
