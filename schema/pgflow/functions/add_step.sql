-- Adds a step at the end of a flow, or returns the step that already bears this slug, as it is.
-- Locks: the flow's row (for no key update), so that no other call picks the same position.
create function pgflow.add_step(
  flow_slug text,
  step_slug text,
  deps_slugs text[] default '{}',
  max_attempts integer default null,
  base_delay integer default null,
  timeout integer default null,
  start_delay integer default null,
  step_type text default 'single',
  required_input_pattern jsonb default null,
  forbidden_input_pattern jsonb default null,
  when_unmet text default 'skip',
  when_exhausted text default 'fail'
)
returns pgflow.steps
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_given text[] := coalesce(add_step.deps_slugs, '{}');
  v_stored text[];
begin
  if add_step.step_type = 'map' and cardinality(v_given) > 1 then
    raise exception using
      message = format(
        'Map step "%s" can have at most one dependency, but %s were provided: %s',
        add_step.step_slug, cardinality(v_given), array_to_string(v_given, ', ')
      );
  end if;
  if exists (select from unnest(v_given) as g (slug) group by g.slug having count(*) > 1) then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format(
        'step %s of flow %s names a parent twice: %s',
        add_step.step_slug, add_step.flow_slug, array_to_string(v_given, ', ', 'null')
      );
  end if;

  perform pgflow._hold_flow(add_step.flow_slug, exclusively => true);

  if exists (
    select from pgflow.steps as s
    where s.flow_slug = add_step.flow_slug and s.step_slug = add_step.step_slug
  ) then
    v_given := array(select g.slug from unnest(v_given) as g (slug) order by g.slug collate "C");
    v_stored := array(
      select d.dep_slug
      from pgflow.deps as d
      where d.flow_slug = add_step.flow_slug and d.step_slug = add_step.step_slug
      order by d.dep_slug collate "C"
    );
    if v_given <> v_stored then
      raise warning using
        message = format(
          'step %s of flow %s exists and keeps its parents [%s]; given were [%s]',
          add_step.step_slug, add_step.flow_slug,
          array_to_string(v_stored, ', '), array_to_string(v_given, ', ')
        );
    end if;
  else
    insert into pgflow.steps (
      flow_slug, step_slug, step_type, step_index, deps_count,
      opt_max_attempts, opt_base_delay, opt_timeout, opt_start_delay,
      required_input_pattern, forbidden_input_pattern, when_unmet, when_exhausted
    )
    values (
      add_step.flow_slug,
      add_step.step_slug,
      coalesce(add_step.step_type, 'single'),
      (
        select coalesce(max(s.step_index) + 1, 0)
        from pgflow.steps as s
        where s.flow_slug = add_step.flow_slug
      ),
      cardinality(v_given),
      add_step.max_attempts,
      add_step.base_delay,
      add_step.timeout,
      add_step.start_delay,
      add_step.required_input_pattern,
      add_step.forbidden_input_pattern,
      add_step.when_unmet,
      add_step.when_exhausted
    );
    insert into pgflow.deps (flow_slug, dep_slug, step_slug)
    select add_step.flow_slug, g.slug, add_step.step_slug
    from unnest(v_given) as g (slug);
  end if;

  return (
    select s
    from pgflow.steps as s
    where s.flow_slug = add_step.flow_slug and s.step_slug = add_step.step_slug
  );
end;
$$;

comment on function pgflow.add_step(
  text, text, text[], integer, integer, integer, integer, text, jsonb, jsonb, text, text
) is
'Adds a step with its parents, which must exist; a map step has one at most. An existing step is '
'returned unchanged, with a warning when its parents are others.';
