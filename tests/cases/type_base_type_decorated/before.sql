CREATE TYPE sh;
CREATE FUNCTION sh_in(cstring) RETURNS sh LANGUAGE internal STRICT IMMUTABLE AS 'textin';
CREATE FUNCTION sh_out(sh) RETURNS cstring LANGUAGE internal STRICT IMMUTABLE AS 'textout';
CREATE TYPE sh (INPUT = sh_in, OUTPUT = sh_out, LIKE = text);
CREATE TABLE t (id int, s sh);
