SELECT r.*, q.* FROM r, q;
