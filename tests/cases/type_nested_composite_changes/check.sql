SELECT id, ((o).i).x::int, ((o).i).e::text, (o).note::text FROM t ORDER BY id;
