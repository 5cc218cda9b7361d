SELECT a, b, z FROM k;
