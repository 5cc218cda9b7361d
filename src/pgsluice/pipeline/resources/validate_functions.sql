-- Runs each SQL and PL/pgSQL function of the schemas in pgsluice.schemas through its validator, and leaves the
-- failures in pgsluice.invalid. A function's own settings hold while it is validated, as they do when it is
-- created; the exception at the end of the inner block takes them back.
do $validate$
declare
  v_function record;
  v_setting text;
  v_invalid jsonb := '[]';
  v_message text;
  v_detail text;
begin
  perform pg_catalog.set_config('check_function_bodies', 'on', true);
  for v_function in
    select
      p.oid,
      p.proconfig,
      l.lanvalidator::pg_catalog.regproc as validator,
      pg_catalog.format(
        '%I.%I(%s)', n.nspname, p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid)
      ) as name
    from pg_catalog.pg_proc as p
    inner join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
    inner join pg_catalog.pg_language as l on l.oid = p.prolang
    where l.lanname in ('sql', 'plpgsql')
      and p.prokind in ('f', 'p')
      and (
        n.nspname = any (pg_catalog.string_to_array(pg_catalog.current_setting('pgsluice.schemas'), E'\x1f'))
        or (
          pg_catalog.current_setting('pgsluice.schemas') = '*'
          and n.nspname <> 'information_schema'
          and n.nspname !~ '^pg_'
        )
      )
      and not exists (
        select from pg_catalog.pg_depend as d
        where d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and d.objid = p.oid and d.deptype = 'e'
      )
    order by p.oid
  loop
    begin
      foreach v_setting in array coalesce(v_function.proconfig, '{}') loop
        perform pg_catalog.set_config(
          pg_catalog.split_part(v_setting, '=', 1),
          pg_catalog.substr(v_setting, pg_catalog.strpos(v_setting, '=') + 1),
          true
        );
      end loop;
      execute pg_catalog.format('select %s(%s)', v_function.validator, v_function.oid);
      raise exception using errcode = 'SL000';
    exception
      when sqlstate 'SL000' then null;
      when others then
        get stacked diagnostics v_message = message_text, v_detail = pg_exception_detail;
        v_invalid := v_invalid || pg_catalog.jsonb_build_object(
          'oid', v_function.oid::bigint, 'name', v_function.name, 'message', v_message, 'detail', v_detail
        );
    end;
  end loop;
  perform pg_catalog.set_config('pgsluice.invalid', v_invalid::text, true);
end;
$validate$
