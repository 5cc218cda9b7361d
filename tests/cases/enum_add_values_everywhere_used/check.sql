SELECT id, s::text, arr::text, sd::text, c::text FROM t;
