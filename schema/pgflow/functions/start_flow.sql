-- Starts a run of a flow: its row, a state for each step, and the tasks of what is ready at once.
-- Locks: the flow's row (share: a deletion or a new step waits, or is waited for); the rest is new.
-- Plans are kept, and go by index: planning anew reads the ends of indexes, where under load the
-- dead rows are, and a plan from the time when a table was small scans all of it until it is
-- analysed.
create function pgflow.start_flow(flow_slug text, input jsonb, run_id uuid default null)
returns setof pgflow.runs
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_run_id uuid := coalesce(start_flow.run_id, gen_random_uuid());
  v_map_size integer;
  v_run record;
begin
  perform pgflow._hold_flow(start_flow.flow_slug, exclusively => false);
  v_map_size := pgflow._root_map_size(start_flow.flow_slug, start_flow.input);

  insert into pgflow.runs as r (run_id, flow_slug, input, remaining_steps)
  values (
    v_run_id,
    start_flow.flow_slug,
    start_flow.input,
    (select count(*) from pgflow.steps as st where st.flow_slug = start_flow.flow_slug)
  )
  returning r.status, r.remaining_steps, r.started_at into v_run;

  insert into pgflow.step_states (flow_slug, run_id, step_slug, remaining_deps, initial_tasks)
  select
    st.flow_slug,
    v_run_id,
    st.step_slug,
    st.deps_count,
    case
      when st.step_type <> 'map' then 1
      when st.deps_count = 0 then v_map_size
    end
  from pgflow.steps as st
  where st.flow_slug = start_flow.flow_slug
  order by st.step_index;

  perform pgflow._emit(
    jsonb_build_object(
      'event_type', 'run:started',
      'run_id', v_run_id,
      'flow_slug', start_flow.flow_slug,
      'input', start_flow.input,
      'status', v_run.status,
      'remaining_steps', v_run.remaining_steps,
      'started_at', v_run.started_at
    ),
    'run:started',
    'pgflow:run:' || v_run_id
  );

  if pgflow._settle_ready_steps(v_run_id) then
    perform pgflow.start_ready_steps(v_run_id);
    perform pgflow.maybe_complete_run(v_run_id);
  end if;

  return query select r.* from pgflow.runs as r where r.run_id = v_run_id;
end;
$$;

comment on function pgflow.start_flow(text, jsonb, uuid) is
'Starts a run and returns it as it then is, which may be completed or failed already. A flow with root maps needs an array as input; a run_id that exists is refused.';
