CREATE TABLE s (id int PRIMARY KEY, b text);
CREATE FUNCTION all_t() RETURNS SETOF s LANGUAGE sql STABLE AS $$ SELECT * FROM s $$;
CREATE FUNCTION inner_use() RETURNS int LANGUAGE sql AS $$ SELECT count(*)::int FROM all_t() $$;
