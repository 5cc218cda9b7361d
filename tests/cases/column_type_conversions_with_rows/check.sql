SELECT id, a::text, b::text::boolean, d::jsonb, e::text, trim(f), g::text, h::text, i::text, j::jsonb, l::text, m::text::bool FROM t;
