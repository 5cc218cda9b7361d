SELECT p.id::text, alt, k.id, q, g.k, g.p::text FROM p, k, g;
