SELECT (SELECT array_agg(a ORDER BY id) FROM a)::text, (SELECT array_agg(b) FROM b)::text, (SELECT array_agg(c) FROM c)::text;
