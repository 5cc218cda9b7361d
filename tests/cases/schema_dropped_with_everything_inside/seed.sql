INSERT INTO gone.t (e) VALUES ('a'); INSERT INTO keep.u VALUES (1, 'a', 'n');
