SELECT nextval('a'), nextval('b'), nextval('c'), nextval('d'); INSERT INTO t DEFAULT VALUES;
