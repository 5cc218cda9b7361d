SELECT id, b FROM r;
