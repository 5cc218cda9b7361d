SELECT * FROM keep;
