SELECT a.*, b.* FROM a, b;
