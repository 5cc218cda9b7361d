CREATE TABLE users (id serial PRIMARY KEY, email text NOT NULL UNIQUE, age int CHECK (age > 0), org int REFERENCES users);
CREATE INDEX ON users (age);
CREATE VIEW v AS SELECT id, email FROM users;
CREATE FUNCTION tf() RETURNS trigger LANGUAGE plpgsql AS 'begin return new; end';
CREATE TRIGGER tr BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION tf();
ALTER TABLE users ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON users USING (age > 1);
GRANT SELECT ON users TO mx_reader; COMMENT ON TABLE users IS 'people';
