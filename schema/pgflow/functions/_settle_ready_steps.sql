-- Decides what becomes of ready steps before any starts: skipped or failed by condition, or
-- completed without a task; again and again, because each of these makes other steps ready.
-- Locks: what cascade_resolve_conditions and cascade_complete_taskless_steps lock.
-- Conditions come first: a skipped parent turns a child map into one without tasks.
create function pgflow._settle_ready_steps(run_id uuid)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Most steps have tasks and no condition.
  while exists (
    select from pgflow.step_states as s
    join pgflow.steps as st on st.flow_slug = s.flow_slug and st.step_slug = s.step_slug
    where s.run_id = _settle_ready_steps.run_id
    and s.status = 'created'
    and s.remaining_deps = 0
    and (
      s.initial_tasks = 0
      or num_nonnulls(st.required_input_pattern, st.forbidden_input_pattern) > 0
    )
  ) loop
    if not pgflow.cascade_resolve_conditions(_settle_ready_steps.run_id) then
      return false;
    end if;
    exit when pgflow.cascade_complete_taskless_steps(_settle_ready_steps.run_id) = 0;
  end loop;
  return true;
end;
$$;

comment on function pgflow._settle_ready_steps(uuid) is
'Resolves conditions and completes steps without tasks until nothing changes; false when that failed the run.';
