SELECT id, x::text, y::text, z::text, w::text FROM t;
