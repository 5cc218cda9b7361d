INSERT INTO e VALUES (1,'x'),(2,'y'),(3,'z'),(4,NULL);
