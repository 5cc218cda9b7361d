CREATE UNLOGGED TABLE a (id serial PRIMARY KEY, t text) WITH (autovacuum_enabled=true, toast.vacuum_truncate=false);
CREATE TABLE b (id int GENERATED ALWAYS AS IDENTITY, t text) WITH (fillfactor=90);
CREATE TABLE c (t text);
CREATE INDEX c_t ON c (t) WITH (fillfactor=70);
