CREATE DOMAIN base AS int CHECK (VALUE > 0);
CREATE DOMAIN derived AS base CHECK (VALUE < 100);
CREATE TYPE holder AS (b base, d derived);
CREATE TABLE t (id int PRIMARY KEY, b base, d derived, h holder, ds derived[]);
