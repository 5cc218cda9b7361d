SELECT id,a,b,c,d,e FROM t;
