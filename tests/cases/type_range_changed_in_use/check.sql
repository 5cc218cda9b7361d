SELECT id, r::text, x::text, rs::text FROM t UNION ALL SELECT id, m::text, '', '' FROM mr ORDER BY 2;
