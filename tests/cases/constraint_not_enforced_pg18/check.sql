SELECT a,b,c,d FROM t;
