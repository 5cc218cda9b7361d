INSERT INTO o (region) VALUES ('eu'), ('us'); INSERT INTO line VALUES (1, 1), (2, 2);
