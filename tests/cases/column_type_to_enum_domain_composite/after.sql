CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN mail AS text CHECK (VALUE LIKE '%@%');
CREATE TABLE t (id int PRIMARY KEY, a mood DEFAULT 'ok' NOT NULL, b text DEFAULT 'sad', c mail, d text, e mood[] DEFAULT '{ok}', f text[]);
CREATE INDEX t_a ON t (a); CREATE INDEX t_p ON t (id) WHERE a = 'ok'; CREATE INDEX t_q ON t (id) WHERE b = 'sad';
CREATE VIEW v AS SELECT a, b FROM t WHERE a = 'ok';
