CREATE TABLE a (id serial PRIMARY KEY, t text) WITH (fillfactor=50, toast.autovacuum_enabled=false);
CREATE UNLOGGED TABLE b (id int GENERATED ALWAYS AS IDENTITY, t text);
CREATE TABLE c (t text) WITH (autovacuum_vacuum_scale_factor=0.1, user_catalog_table=true);
CREATE INDEX c_t ON c (t) WITH (fillfactor=60, deduplicate_items=off);
