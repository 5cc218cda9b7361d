CREATE FUNCTION cmp48(a int, b bigint) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN a < b THEN -1 WHEN a > b THEN 1 ELSE 0 END $$;
CREATE OPERATOR FAMILY kept USING btree;
ALTER OPERATOR FAMILY kept USING btree ADD OPERATOR 3 = (int, bigint), FUNCTION 1 (int, bigint) btint48cmp(int, bigint);
CREATE OPERATOR CLASS come FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int);
ALTER OPERATOR FAMILY come USING btree ADD OPERATOR 1 < (int, bigint), FUNCTION 1 (int, bigint) cmp48(int, bigint);
COMMENT ON OPERATOR FAMILY come USING btree IS 'with bigint';
