SELECT id, "Total"::float8, "user" FROM "My App"."Order" ORDER BY id;
