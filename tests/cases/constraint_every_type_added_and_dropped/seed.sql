INSERT INTO p VALUES (1,'x'),(2,'y'); INSERT INTO t VALUES (1,1,'x','[1,3)'),(2,2,'y','[4,5)');
