-- pgsluice: renamed from users
CREATE TABLE people (id serial PRIMARY KEY, email text NOT NULL UNIQUE, age int CHECK (age > 0), org int REFERENCES people, extra text DEFAULT 'x');
CREATE INDEX ON people (age);
CREATE VIEW v AS SELECT id, email FROM people;
CREATE FUNCTION tf() RETURNS trigger LANGUAGE plpgsql AS 'begin return new; end';
CREATE TRIGGER tr BEFORE INSERT ON people FOR EACH ROW EXECUTE FUNCTION tf();
ALTER TABLE people ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON people USING (age > 1);
GRANT SELECT ON people TO mx_reader; COMMENT ON TABLE people IS 'people';
