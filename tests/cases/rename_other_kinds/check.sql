SELECT id, c::text, d FROM t;
