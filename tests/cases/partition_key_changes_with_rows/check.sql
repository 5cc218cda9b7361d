SELECT e.*, (SELECT count(*) FROM r) FROM e ORDER BY 1;
