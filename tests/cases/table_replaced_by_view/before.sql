CREATE TABLE things (id int PRIMARY KEY, name text);
CREATE TABLE base (id int, name text);
CREATE VIEW over AS SELECT id FROM things;
