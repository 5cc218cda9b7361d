CREATE TABLE room (id int4range, valid daterange, name text, PRIMARY KEY (id, valid WITHOUT OVERLAPS));
CREATE TABLE booking (id int4range, valid daterange, room int4range, FOREIGN KEY (room, PERIOD valid) REFERENCES room (id, PERIOD valid));
CREATE TABLE plain (id int4range, valid daterange);
