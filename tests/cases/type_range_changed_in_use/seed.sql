INSERT INTO t VALUES (1, '[1,2)', '[a,b)', '{"[1,2)"}'); INSERT INTO mr VALUES (1, '{[a,b)}');
