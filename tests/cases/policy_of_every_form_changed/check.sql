SELECT id, owner, tenant::int FROM t;
