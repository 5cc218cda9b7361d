CREATE TABLE keep (id int);
CREATE SCHEMA fresh AUTHORIZATION mx_owner;
GRANT USAGE ON SCHEMA fresh TO mx_app, mx_reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA fresh GRANT SELECT ON TABLES TO mx_reader;
CREATE TABLE fresh.t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, k int REFERENCES fresh.t);
CREATE TABLE fresh.hidden (id serial);
REVOKE SELECT ON fresh.hidden FROM mx_reader;
ALTER TABLE fresh.t OWNER TO mx_owner;
CREATE VIEW fresh.v WITH (security_invoker) AS SELECT * FROM fresh.t;
