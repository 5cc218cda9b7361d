INSERT INTO t VALUES (1, 'a@b', 'n', '{1,2}');
