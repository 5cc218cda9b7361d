CREATE TABLE o (id serial PRIMARY KEY, region text NOT NULL DEFAULT 'eu', note text);
CREATE TABLE line (id int PRIMARY KEY, o int NOT NULL, FOREIGN KEY (o) REFERENCES o);
CREATE VIEW ov AS SELECT o.id, count(*) AS n FROM o JOIN line l ON l.o = o.id GROUP BY o.id;
GRANT SELECT, INSERT ON o TO mx_app; ALTER TABLE o OWNER TO mx_owner; GRANT USAGE ON SEQUENCE o_id_seq TO mx_app;
