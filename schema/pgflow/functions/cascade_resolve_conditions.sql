-- Tests the conditions of ready steps and skips those that fail them, or fails the run.
-- Locks: the run's row, then step states, then the task rows of what is skipped or cancelled, then
-- their messages.
create function pgflow.cascade_resolve_conditions(run_id uuid)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_max_turns constant integer := 50;
  v_turns integer := 0;
  v_status text;
  v_failed text;
  v_skipped text[];
  v_cascaded text[];
  v_step_slug text;
begin
  select r.status into v_status
  from pgflow.runs as r
  where r.run_id = cascade_resolve_conditions.run_id
  for update;
  if v_status <> 'started' then
    return v_status = 'completed';
  end if;

  loop
    v_turns := v_turns + 1;
    if v_turns > c_max_turns then
      raise exception using
        message = format('Cascade loop exceeded safety limit of %s iterations', c_max_turns),
        hint = 'A chain of conditions, each decided by the step before, is this long; split the flow.';
    end if;

    select
      (array_agg(u.step_slug order by u.step_index) filter (where u.when_unmet = 'fail'))[1],
      array_agg(u.step_slug order by u.step_index) filter (where u.when_unmet = 'skip'),
      array_agg(u.step_slug order by u.step_index) filter (where u.when_unmet = 'skip-cascade')
    into v_failed, v_skipped, v_cascaded
    from pgflow._unmet_conditions(cascade_resolve_conditions.run_id) as u;

    if v_failed is not null then
      perform pgflow._fail_step(
        cascade_resolve_conditions.run_id,
        v_failed,
        'Condition not met'
      );
      return false;
    end if;
    if v_skipped is not null then
      perform pgflow._skip_unmet_steps(cascade_resolve_conditions.run_id, v_skipped);
    end if;
    foreach v_step_slug in array coalesce(v_cascaded, '{}') loop
      perform pgflow._cascade_force_skip_steps(
        cascade_resolve_conditions.run_id,
        v_step_slug,
        'condition_unmet'
      );
    end loop;
    exit when v_skipped is null;
  end loop;
  return true;
end;
$$;

comment on function pgflow.cascade_resolve_conditions(uuid) is
'Applies when_unmet to each ready step whose patterns do not fit, and to what that makes ready; false when the run is failed.';
