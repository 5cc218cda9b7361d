SELECT o.id, region, (SELECT count(*) FROM line), (SELECT last_value FROM o_id_seq) FROM o ORDER BY 1;
