CREATE TYPE st AS ENUM ('new', 'done');
CREATE TABLE a (id int PRIMARY KEY, s st NOT NULL);
CREATE TABLE b (id int PRIMARY KEY, s st DEFAULT 'new');
