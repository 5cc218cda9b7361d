INSERT INTO t VALUES (1,'ok','sad','a@b','c@d','{sad,ok}','{ok}');
