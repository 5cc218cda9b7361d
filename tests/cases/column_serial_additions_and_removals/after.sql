CREATE TABLE a (id serial, t text);
CREATE TABLE b (id bigint NOT NULL, t text);
CREATE TABLE c (t text, id bigserial PRIMARY KEY);
CREATE TABLE d (t text);
CREATE SEQUENCE e_id_seq AS integer;
CREATE TABLE e (id int NOT NULL DEFAULT 4, x int DEFAULT nextval('e_id_seq'));
