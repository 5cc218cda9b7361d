INSERT INTO app.accounts (email, role, "order", name) VALUES ('a@b.c', 'admin', 3, 'ann'), ('d@e.f', 'user', 4, 'bob'); INSERT INTO app.posts VALUES (1, 1, 'user', 'b');
