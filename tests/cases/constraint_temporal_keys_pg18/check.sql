SELECT * FROM room;
