SELECT id, a, b, c::text, d, (SELECT count(*) FROM k) FROM t ORDER BY 1;
