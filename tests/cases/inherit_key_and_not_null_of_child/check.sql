SELECT k.*, r.k FROM k, r;
