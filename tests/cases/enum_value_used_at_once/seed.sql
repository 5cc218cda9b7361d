INSERT INTO t VALUES (1, 'new', '{done,new}'), (2, 'done', '{}');
