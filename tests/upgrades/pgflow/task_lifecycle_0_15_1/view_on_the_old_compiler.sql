-- expect: refused 2BP01
-- message: cannot drop function pgflow.ensure_flow_compiled(text,jsonb,boolean) because other objects depend on it
-- Somebody's view calls the three-argument compiler, which 0.16.0 takes away.

create schema app;
create view app.compiled as
select pgflow.ensure_flow_compiled('f', '{"steps": []}', false) as answer;

-- then:
select count(*) = 1 from pg_catalog.pg_views as v where v.schemaname = 'app';
