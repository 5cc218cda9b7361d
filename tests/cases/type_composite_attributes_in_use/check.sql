SELECT id, (a).street, (a).zip, (many[1]).zip FROM t;
