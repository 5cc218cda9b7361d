CREATE TABLE o (id serial, region text NOT NULL DEFAULT 'eu', note text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE o_eu PARTITION OF o FOR VALUES IN ('eu');
CREATE TABLE o_rest PARTITION OF o DEFAULT;
CREATE TABLE line (id int PRIMARY KEY, o int NOT NULL);
CREATE VIEW ov AS SELECT o.id, count(*) AS n FROM o JOIN line l ON l.o = o.id GROUP BY o.id;
GRANT SELECT, INSERT ON o TO mx_app; ALTER TABLE o OWNER TO mx_owner; GRANT USAGE ON SEQUENCE o_id_seq TO mx_app;
