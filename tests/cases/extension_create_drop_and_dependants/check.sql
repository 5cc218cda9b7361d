SELECT id, a::text, b FROM t;
