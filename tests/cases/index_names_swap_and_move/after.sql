CREATE TABLE t (a int, b int); CREATE TABLE u (a int, b int);
CREATE INDEX x ON t (b); CREATE INDEX y ON t (a); CREATE INDEX z ON t (a DESC); CREATE INDEX n2 ON t (a, b); CREATE INDEX taken ON u (b);
