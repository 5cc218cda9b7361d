CREATE SCHEMA "Sch é""ma";
CREATE TABLE "Sch é""ma"."select" ("Order" int PRIMARY KEY, "user" text DEFAULT 'a''b', "a""b" int CHECK ("a""b" > 0));
CREATE INDEX "From" ON "Sch é""ma"."select" ("user");
CREATE VIEW "Sch é""ma"."View" AS SELECT "Order", "user" FROM "Sch é""ma"."select";
