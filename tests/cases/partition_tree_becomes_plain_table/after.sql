CREATE TABLE c (id serial PRIMARY KEY, at date NOT NULL, v text);
CREATE INDEX c_v ON c (v);
CREATE VIEW v AS SELECT * FROM c;
