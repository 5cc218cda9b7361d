CREATE SCHEMA "Sch é""ma";
CREATE TABLE "Sch é""ma"."select" ("Order" bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "user" varchar(40) DEFAULT 'a\b', "a""b" int CHECK ("a""b" > 1), "Ünï" int REFERENCES "Sch é""ma"."select" NOT NULL DEFAULT 3 );
CREATE INDEX "From" ON "Sch é""ma"."select" ("user" DESC);
CREATE VIEW "Sch é""ma"."View" AS SELECT "Order", "user" FROM "Sch é""ma"."select";
COMMENT ON COLUMN "Sch é""ma"."select"."a""b" IS 'E''\n';
