SELECT id, j::text::jsonb, s::text, n::text, ts::date FROM t;
