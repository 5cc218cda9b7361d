CREATE TABLE a (id int NOT NULL, t text);
CREATE TABLE b (id bigserial, t text);
CREATE TABLE c (t text);
CREATE TABLE d (id serial, t text);
CREATE TABLE e (id serial, x int DEFAULT nextval('e_id_seq'));
