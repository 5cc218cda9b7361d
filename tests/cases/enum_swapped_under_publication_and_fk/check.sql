SELECT id, k::text, u::text FROM b ORDER BY id;
