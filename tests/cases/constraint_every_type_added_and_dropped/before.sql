CREATE TABLE p (id int PRIMARY KEY, u text UNIQUE);
CREATE TABLE t (id int, a int, b text, r int4range, CHECK (a > 0), CONSTRAINT ex EXCLUDE USING gist (r WITH &&), CONSTRAINT fk FOREIGN KEY (a) REFERENCES p, UNIQUE (a, b));
