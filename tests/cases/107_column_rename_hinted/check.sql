SELECT id, email FROM addresses ORDER BY id;
