SELECT count(*) FROM p WHERE m::text IN ('happy', 'glad');
