CREATE TABLE t (a int, b int);
CREATE VIEW v1 AS SELECT a, b FROM t WHERE a > 0 WITH LOCAL CHECK OPTION;
CREATE VIEW v2 WITH (security_barrier=false) AS SELECT a FROM t;
CREATE VIEW v3 AS SELECT a FROM t WHERE a > 1;
CREATE VIEW v4 AS SELECT a FROM t;
CREATE VIEW v5 WITH (security_invoker=on, check_option=cascaded, security_barrier) AS SELECT a, b FROM t;
