SELECT id, s::text FROM b ORDER BY id;
