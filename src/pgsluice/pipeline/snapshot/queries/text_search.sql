-- Text search dictionaries, configurations, parsers and templates.
select
  'pg_ts_dict'::regclass::oid as classid,
  d.oid as objid,
  0 as objsubid,
  'text search dictionary' as kind,
  array[n.nspname::text, d.dictname::text] as path,
  jsonb_build_object(
    'template', quote_ident(tn.nspname) || '.' || quote_ident(t.tmplname),
    'init', d.dictinitoption,
    'owner', nullif(pg_get_userbyid(d.dictowner), %(runner)s::name),
    'comment', (select e.description from pg_description as e
      where e.objoid = d.oid and e.classoid = 'pg_ts_dict'::regclass and e.objsubid = 0)
  ) as facets
from pg_ts_dict as d
join pg_namespace as n on n.oid = d.dictnamespace
join pg_ts_template as t on t.oid = d.dicttemplate
join pg_namespace as tn on tn.oid = t.tmplnamespace
where n.nspname = any(%(schemas)s)
union all
select
  'pg_ts_config'::regclass::oid,
  c.oid,
  0,
  'text search configuration',
  array[n.nspname::text, c.cfgname::text],
  jsonb_build_object(
    'parser', quote_ident(pn.nspname) || '.' || quote_ident(p.prsname),
    'mappings', (select jsonb_object_agg(x.alias, x.dictionaries) from (
      select tt.alias, jsonb_agg(m.mapdict::regdictionary::text order by m.mapseqno) as dictionaries
      from pg_ts_config_map as m
      join ts_token_type(c.cfgparser) as tt on tt.tokid = m.maptokentype
      where m.mapcfg = c.oid
      group by tt.alias) as x),
    'owner', nullif(pg_get_userbyid(c.cfgowner), %(runner)s::name),
    'comment', (select e.description from pg_description as e
      where e.objoid = c.oid and e.classoid = 'pg_ts_config'::regclass and e.objsubid = 0))
from pg_ts_config as c
join pg_namespace as n on n.oid = c.cfgnamespace
join pg_ts_parser as p on p.oid = c.cfgparser
join pg_namespace as pn on pn.oid = p.prsnamespace
where n.nspname = any(%(schemas)s)
union all
select
  'pg_ts_parser'::regclass::oid,
  p.oid,
  0,
  'text search parser',
  array[n.nspname::text, p.prsname::text],
  jsonb_build_object(
    'functions', jsonb_build_array(p.prsstart::text, p.prstoken::text, p.prsend::text, p.prsheadline::text, p.prslextype::text),
    'comment', (select e.description from pg_description as e
      where e.objoid = p.oid and e.classoid = 'pg_ts_parser'::regclass and e.objsubid = 0))
from pg_ts_parser as p
join pg_namespace as n on n.oid = p.prsnamespace
where n.nspname = any(%(schemas)s)
union all
select
  'pg_ts_template'::regclass::oid,
  t.oid,
  0,
  'text search template',
  array[n.nspname::text, t.tmplname::text],
  jsonb_build_object(
    'functions', jsonb_build_array(t.tmplinit::text, t.tmpllexize::text),
    'comment', (select e.description from pg_description as e
      where e.objoid = t.oid and e.classoid = 'pg_ts_template'::regclass and e.objsubid = 0))
from pg_ts_template as t
join pg_namespace as n on n.oid = t.tmplnamespace
where n.nspname = any(%(schemas)s)
