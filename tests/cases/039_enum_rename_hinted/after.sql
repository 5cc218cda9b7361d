CREATE TYPE mood AS ENUM (
  'sad',
  'ok',
  'glad' -- pgsluice: renamed from happy
);
CREATE TABLE p (id int PRIMARY KEY, m mood NOT NULL DEFAULT 'ok');
CREATE INDEX p_m ON p(m);
CREATE VIEW happy AS SELECT id FROM p WHERE m='glad';
CREATE FUNCTION is_happy(x mood) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT x='glad' $$;
