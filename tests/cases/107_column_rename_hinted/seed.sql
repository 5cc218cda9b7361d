INSERT INTO users VALUES (1,'a@b',3), (2,'c@d',null);
