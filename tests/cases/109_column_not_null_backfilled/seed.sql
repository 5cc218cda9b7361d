INSERT INTO customers VALUES (1,'DE'), (2,'FR'); INSERT INTO orders VALUES (10,1), (11,2), (12,1);
