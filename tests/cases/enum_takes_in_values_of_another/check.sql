SELECT c.id, c.status::text, c.tried::text, j.status::text FROM counts AS c JOIN jobs AS j USING (id) ORDER BY c.id;
