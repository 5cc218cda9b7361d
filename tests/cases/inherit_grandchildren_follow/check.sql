SELECT a::bigint, c::text FROM p ORDER BY 1;
