CREATE TABLE users (
  id bigint PRIMARY KEY,
  -- pgsluice: renamed from email
  mail text NOT NULL,
  age int,
  CONSTRAINT users_email_key UNIQUE (mail)
);
CREATE VIEW addresses AS SELECT id, mail AS email FROM users;
