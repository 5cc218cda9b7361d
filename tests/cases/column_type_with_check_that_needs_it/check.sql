SELECT id, a::text, b::text::boolean FROM t ORDER BY 1;
