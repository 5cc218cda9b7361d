CREATE FUNCTION near(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'select abs($1 - $2) < 2';
CREATE TABLE r (id int PRIMARY KEY, a int4range, b text, during tsrange, EXCLUDE USING gist (a WITH &&) WHERE (id > 0), CONSTRAINT ex2 EXCLUDE USING btree (b WITH =) INCLUDE (id));
