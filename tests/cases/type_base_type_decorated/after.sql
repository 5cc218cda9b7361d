CREATE TYPE sh;
CREATE FUNCTION sh_in(cstring) RETURNS sh LANGUAGE internal STRICT IMMUTABLE AS 'textin';
CREATE FUNCTION sh_out(sh) RETURNS cstring LANGUAGE internal STRICT IMMUTABLE AS 'textout';
CREATE TYPE sh (INPUT = sh_in, OUTPUT = sh_out, LIKE = text);
CREATE TABLE t (id int, s sh, n int);
COMMENT ON TYPE sh IS 'shell';
GRANT USAGE ON TYPE sh TO mx_app;
REVOKE USAGE ON TYPE sh FROM PUBLIC;
