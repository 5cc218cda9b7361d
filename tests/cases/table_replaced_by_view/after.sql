CREATE TABLE base (id int, name text);
CREATE VIEW things AS SELECT id, name FROM base;
CREATE VIEW over AS SELECT id FROM things;
