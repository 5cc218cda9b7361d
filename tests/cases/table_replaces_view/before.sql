CREATE VIEW things AS SELECT 1 AS id, 'x'::text AS name;
CREATE VIEW over AS SELECT id FROM things;
GRANT SELECT ON things TO mx_reader;
GRANT SELECT ON over TO mx_reader;
