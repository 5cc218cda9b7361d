CREATE TABLE t (a int, b int); CREATE TABLE u (a int, b int);
CREATE INDEX x ON t (a); CREATE INDEX y ON t (b); CREATE INDEX z ON u (a); CREATE INDEX n1 ON t (a, b); CREATE TABLE taken (a int);
