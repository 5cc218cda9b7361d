CREATE TYPE queue_status AS ENUM ('queued', 'picked');
CREATE TYPE outcome AS ENUM ('exception', 'successful');
CREATE TABLE jobs (id int PRIMARY KEY, status queue_status NOT NULL DEFAULT 'queued');
CREATE INDEX jobs_picked ON jobs (id) WHERE status = 'picked';
CREATE TABLE counts (id int PRIMARY KEY, status outcome NOT NULL, tried outcome[]);
CREATE UNIQUE INDEX counts_of ON counts (status, id);
