CREATE TYPE mood AS ENUM ('sad','ok','happy');
CREATE TABLE p (id int PRIMARY KEY, m mood NOT NULL DEFAULT 'ok');
CREATE INDEX p_m ON p(m);
CREATE VIEW happy AS SELECT id FROM p WHERE m='happy';
CREATE FUNCTION is_happy(x mood) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT x='happy' $$;
