SELECT id, e::text, n FROM keep.u;
