INSERT INTO a_table_with_a_name_that_is_as_long_as_names_may_get_in_pg_63ch (c) VALUES (5);
