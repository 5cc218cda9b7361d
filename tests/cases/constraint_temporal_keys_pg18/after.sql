CREATE TABLE room (id int4range, valid daterange, name text, CONSTRAINT room_key UNIQUE (id, valid WITHOUT OVERLAPS) DEFERRABLE);
CREATE TABLE booking (id int4range, valid daterange, room int4range);
CREATE TABLE plain (id int4range, valid daterange, PRIMARY KEY (id, valid WITHOUT OVERLAPS));
CREATE TABLE b2 (id int4range, valid daterange, p int4range, PRIMARY KEY (id, valid WITHOUT OVERLAPS), FOREIGN KEY (p, PERIOD valid) REFERENCES plain (id, PERIOD valid));
