CREATE TABLE users (id bigint PRIMARY KEY, email text NOT NULL, age int, CONSTRAINT users_email_key UNIQUE (email));
CREATE VIEW addresses AS SELECT id, email FROM users;
