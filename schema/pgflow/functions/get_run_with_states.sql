-- Returns a run and the states of its steps as one JSON document.
-- Locks: nothing.
-- security definer: for roles that may read runs without rights on the tables; an operator grants
-- it.
create function pgflow.get_run_with_states(run_id uuid)
returns jsonb
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'run', to_jsonb(r),
    'steps', coalesce(
      (
        select jsonb_agg(to_jsonb(s) order by st.step_index)
        from pgflow.step_states as s
        join pgflow.steps as st on st.flow_slug = s.flow_slug and st.step_slug = s.step_slug
        where s.run_id = r.run_id
      ),
      '[]'
    )
  )
  from pgflow.runs as r
  where r.run_id = get_run_with_states.run_id;
$$;

comment on function pgflow.get_run_with_states(uuid) is
'A run as {"run": {...}, "steps": [{...}, ...]}, all columns, steps in order; null if there is none. Runs with the owner''s rights.';
