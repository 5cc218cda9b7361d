CREATE TABLE t (id int PRIMARY KEY, parent int, kind text, n numeric(10,2), at timestamptz, tags text[], doc jsonb);
CREATE VIEW v1 AS WITH x AS MATERIALIZED (SELECT id, n FROM t) SELECT x.id, sum(x.n) OVER (PARTITION BY x.id ORDER BY x.n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM x;
CREATE VIEW v2 AS SELECT t.id, u.tag FROM t, LATERAL unnest(t.tags) WITH ORDINALITY AS u(tag, pos) WHERE t.kind IN ('a', 'b') ORDER BY u.pos DESC NULLS LAST LIMIT 10;
CREATE VIEW v3 AS SELECT kind, count(*) FILTER (WHERE n > 0) AS c, grouping(kind) AS g FROM t GROUP BY ROLLUP (kind) HAVING count(*) > 1;
CREATE VIEW v4 AS SELECT DISTINCT ON (kind) kind, at AT TIME ZONE 'UTC' AS utc, doc ->> 'x' AS x FROM t ORDER BY kind, at;
CREATE VIEW v5 ("Col A", "select") AS VALUES (1, 'a'), (2, 'b');
CREATE VIEW v6 AS SELECT * FROM v1 NATURAL JOIN v2;
CREATE VIEW v7 AS TABLE v3;
CREATE VIEW v8 AS SELECT id FROM ROWS FROM (generate_series(1, 2), generate_series(1, 3)) AS r(id, j);
