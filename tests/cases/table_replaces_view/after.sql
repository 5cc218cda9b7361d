CREATE TABLE things (id int PRIMARY KEY, name text);
CREATE VIEW over AS SELECT id FROM things;
GRANT SELECT ON things TO mx_reader;
GRANT SELECT ON over TO mx_reader;
