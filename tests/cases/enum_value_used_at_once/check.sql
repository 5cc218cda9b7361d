SELECT id, s::text, arr::text FROM t ORDER BY id;
