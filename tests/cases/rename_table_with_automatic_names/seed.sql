INSERT INTO users (email, age, org) VALUES ('a', 3, 1), ('b', 4, 1);
