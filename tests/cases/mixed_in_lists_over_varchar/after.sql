CREATE DOMAIN d AS varchar(9) CHECK (VALUE IN ('a', 'b'));
CREATE TABLE t (id int PRIMARY KEY, kind varchar(20) CHECK (kind IN ('a]', 'it''s', 'c"[')), tags varchar[] DEFAULT ARRAY['x']::varchar[],
  CONSTRAINT not_in CHECK (kind NOT IN ('q', 'r') AND tags && ARRAY['a', 'b']::varchar[]),
  g boolean GENERATED ALWAYS AS (kind IN ('a', 'b')) STORED);
CREATE TABLE fresh (id int, k varchar NOT NULL DEFAULT 'a' CHECK (k LIKE ANY (ARRAY['a%', 'b%'])), c char(3) CHECK (c IN ('a', 'b')), d d);
CREATE INDEX t_k ON t (id) WHERE kind IN ('a', 'b');
CREATE VIEW v AS SELECT id FROM t WHERE kind IN ('a', 'b') OR kind = ANY ('{a,b}'::varchar[]);
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON t USING (kind IN ('a', 'b')) WITH CHECK (kind NOT IN ('z', 'y'));
CREATE FUNCTION tf() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.kind = ANY ((ARRAY['a'::varchar])::text[]) THEN RETURN NULL; END IF; RETURN NEW; END $$;
CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.kind IN ('a', 'b')) EXECUTE FUNCTION tf();
CREATE RULE r AS ON DELETE TO t WHERE OLD.kind IN ('a', 'b') DO INSTEAD NOTHING;
CREATE FUNCTION f(k varchar) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN k IN ('a', 'b');
CREATE MATERIALIZED VIEW m AS SELECT CASE WHEN kind IN ('a', 'b') THEN 1 END AS x FROM t;
