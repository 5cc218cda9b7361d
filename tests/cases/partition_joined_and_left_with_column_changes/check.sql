SELECT (SELECT array_agg(ROW(id,k,v))::text FROM e1), (SELECT array_agg(ROW(id,k,v))::text FROM e2), (SELECT array_agg(ROW(id,k))::text FROM e3), (SELECT array_agg(ROW(id,k,v))::text FROM e4);
