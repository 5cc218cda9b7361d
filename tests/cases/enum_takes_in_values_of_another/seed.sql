INSERT INTO jobs VALUES (1, 'queued'), (2, 'picked');
INSERT INTO counts VALUES (1, 'exception', '{exception,successful}'), (2, 'successful', NULL);
