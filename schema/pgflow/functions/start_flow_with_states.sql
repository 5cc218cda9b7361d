-- Starts a run and returns it with its steps, in one call for clients.
-- Locks: what start_flow locks.
-- security definer: for roles that may start runs without rights on the tables; an operator grants
-- it.
create function pgflow.start_flow_with_states(
  flow_slug text,
  input jsonb,
  run_id uuid default null
)
returns jsonb
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_run_id uuid;
begin
  select r.run_id into v_run_id
  from pgflow.start_flow(
    start_flow_with_states.flow_slug,
    start_flow_with_states.input,
    start_flow_with_states.run_id
  ) as r;

  return pgflow.get_run_with_states(v_run_id);
end;
$$;

comment on function pgflow.start_flow_with_states(text, jsonb, uuid) is
'Starts a run and returns what get_run_with_states says of it. Runs with the owner''s rights.';
