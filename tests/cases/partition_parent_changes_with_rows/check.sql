SELECT id, d, v, w FROM e ORDER BY 1;
