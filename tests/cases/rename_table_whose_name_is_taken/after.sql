-- pgsluice: renamed from a
CREATE TABLE b (id int PRIMARY KEY, x int NOT NULL);
-- pgsluice: renamed from b
CREATE TABLE c (id int PRIMARY KEY, y text NOT NULL);
