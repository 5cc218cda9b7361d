SELECT id, body FROM t;
