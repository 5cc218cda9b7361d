-- What belongs to no schema: only a target that manages everything owns it.
select
  'pg_extension'::regclass::oid as classid,
  e.oid as objid,
  0 as objsubid,
  'extension' as kind,
  array[e.extname::text] as path,
  jsonb_build_object(
    'schema', n.nspname,
    'version', e.extversion,
    '#default_comment', a.comment,
    'comment', case when d.description is distinct from a.comment then coalesce(d.description, '') end) as facets
from pg_extension as e
join pg_namespace as n on n.oid = e.extnamespace
left join pg_available_extensions() as a on a.name = e.extname
left join pg_description as d on d.objoid = e.oid and d.classoid = 'pg_extension'::regclass and d.objsubid = 0
where %(whole)s and e.oid >= 16384
union all
select
  'pg_event_trigger'::regclass::oid,
  t.oid,
  0,
  'event trigger',
  array[t.evtname::text],
  jsonb_build_object(
    'event', t.evtevent,
    'tags', to_jsonb(t.evttags),
    'function', t.evtfoid::regproc::text,
    'enabled', case t.evtenabled when 'D' then 'disable' when 'R' then 'enable replica' when 'A' then 'enable always' end,
    'owner', nullif(pg_get_userbyid(t.evtowner), %(runner)s::name),
    'comment', (select e.description from pg_description as e
      where e.objoid = t.oid and e.classoid = 'pg_event_trigger'::regclass and e.objsubid = 0))
from pg_event_trigger as t
where %(whole)s
union all
select
  'pg_publication'::regclass::oid,
  p.oid,
  0,
  'publication',
  array[p.pubname::text],
  jsonb_build_object(
    'all_tables', nullif(p.puballtables, false),
    'publish', array_to_string(array[
      case when p.pubinsert then 'insert' end, case when p.pubupdate then 'update' end,
      case when p.pubdelete then 'delete' end, case when p.pubtruncate then 'truncate' end], ', '),
    'via_root', nullif(p.pubviaroot, false),
    'generated_columns', nullif(to_jsonb(p) ->> 'pubgencols', 'n'),
    'tables', (select jsonb_agg(jsonb_build_array(tn.nspname, t.relname,
        (select jsonb_agg(a.attname order by a.attnum) from pg_attribute as a
          where a.attrelid = t.oid and a.attnum = any(r.prattrs::smallint[])),
        pg_get_expr(r.prqual, r.prrelid)) order by tn.nspname, t.relname)
      from pg_publication_rel as r join pg_class as t on t.oid = r.prrelid join pg_namespace as tn on tn.oid = t.relnamespace
      where r.prpubid = p.oid),
    'schemas', (select jsonb_agg(s.nspname order by s.nspname)
      from pg_publication_namespace as m join pg_namespace as s on s.oid = m.pnnspid where m.pnpubid = p.oid),
    'owner', nullif(pg_get_userbyid(p.pubowner), %(runner)s::name),
    'comment', (select e.description from pg_description as e
      where e.objoid = p.oid and e.classoid = 'pg_publication'::regclass and e.objsubid = 0))
from pg_publication as p
where %(whole)s
union all
select
  'pg_foreign_data_wrapper'::regclass::oid,
  w.oid,
  0,
  'foreign data wrapper',
  array[w.fdwname::text],
  jsonb_build_object(
    'handler', case when w.fdwhandler <> 0 then w.fdwhandler::regproc::text end,
    'validator', case when w.fdwvalidator <> 0 then w.fdwvalidator::regproc::text end,
    'options', (select jsonb_object_agg(o.option_name, o.option_value) from pg_options_to_table(w.fdwoptions) as o),
    'owner', nullif(pg_get_userbyid(w.fdwowner), %(runner)s::name),
    'grants', case when w.fdwacl is not null then coalesce((
      select jsonb_agg(jsonb_build_array(
        case a.grantee when w.fdwowner then '@owner' when 0 then null else pg_get_userbyid(a.grantee) end,
        a.privilege_type, a.is_grantable))
      from aclexplode(w.fdwacl) as a), '[]') end,
    'comment', (select e.description from pg_description as e
      where e.objoid = w.oid and e.classoid = 'pg_foreign_data_wrapper'::regclass and e.objsubid = 0))
from pg_foreign_data_wrapper as w
where %(whole)s
union all
select
  'pg_foreign_server'::regclass::oid,
  s.oid,
  0,
  'server',
  array[s.srvname::text],
  jsonb_build_object(
    'wrapper', w.fdwname,
    'type', s.srvtype,
    'version', s.srvversion,
    'options', (select jsonb_object_agg(o.option_name, o.option_value) from pg_options_to_table(s.srvoptions) as o),
    'owner', nullif(pg_get_userbyid(s.srvowner), %(runner)s::name),
    'grants', case when s.srvacl is not null then coalesce((
      select jsonb_agg(jsonb_build_array(
        case a.grantee when s.srvowner then '@owner' when 0 then null else pg_get_userbyid(a.grantee) end,
        a.privilege_type, a.is_grantable))
      from aclexplode(s.srvacl) as a), '[]') end,
    'comment', (select e.description from pg_description as e
      where e.objoid = s.oid and e.classoid = 'pg_foreign_server'::regclass and e.objsubid = 0))
from pg_foreign_server as s
join pg_foreign_data_wrapper as w on w.oid = s.srvfdw
where %(whole)s
union all
select
  'pg_user_mapping'::regclass::oid,
  u.umid,
  0,
  'user mapping',
  array[u.srvname::text, case u.umuser when 0 then 'PUBLIC' else pg_get_userbyid(u.umuser)::text end],
  jsonb_build_object(
    'options', (select jsonb_object_agg(o.option_name, o.option_value) from pg_options_to_table(u.umoptions) as o))
-- the view, since the table is for superusers alone; it hides options from who may not use them
from pg_user_mappings as u
where %(whole)s
union all
select
  'pg_language'::regclass::oid,
  l.oid,
  0,
  'language',
  array[l.lanname::text],
  jsonb_build_object(
    'trusted', l.lanpltrusted,
    'owner', nullif(pg_get_userbyid(l.lanowner), %(runner)s::name),
    'grants', case when l.lanacl is not null then coalesce((
      select jsonb_agg(jsonb_build_array(
        case a.grantee when l.lanowner then '@owner' when 0 then null else pg_get_userbyid(a.grantee) end,
        a.privilege_type, a.is_grantable))
      from aclexplode(l.lanacl) as a), '[]') end,
    'comment', (select e.description from pg_description as e
      where e.objoid = l.oid and e.classoid = 'pg_language'::regclass and e.objsubid = 0))
from pg_language as l
where %(whole)s and l.lanispl and l.oid >= 16384
union all
select
  'pg_transform'::regclass::oid,
  t.oid,
  0,
  'transform',
  array[format_type(t.trftype, null), l.lanname::text],
  jsonb_build_object('from_sql', t.trffromsql::text, 'to_sql', t.trftosql::text)
from pg_transform as t
join pg_language as l on l.oid = t.trflang
where %(whole)s and t.oid >= 16384
union all
select
  'pg_am'::regclass::oid,
  m.oid,
  0,
  'access method',
  array[m.amname::text],
  jsonb_build_object('handler', m.amhandler::text, 'type', m.amtype)
from pg_am as m
where %(whole)s and m.oid >= 16384
