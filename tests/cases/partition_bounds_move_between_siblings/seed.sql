INSERT INTO e VALUES (1,'a'),(17,'b'),(40,'c');
