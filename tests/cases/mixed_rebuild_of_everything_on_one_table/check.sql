SELECT a.id, a.email::text, a.role::text, a."order"::int, a.name::text, p.body FROM app.accounts a LEFT JOIN app.posts p ON p.account = a.id ORDER BY 1;
