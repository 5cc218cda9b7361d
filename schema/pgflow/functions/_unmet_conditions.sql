-- Lists the steps that are ready but whose patterns do not fit.
-- Locks: nothing.
-- A pattern is compared with the run's input for a root step, else with an object of the outputs of
-- the parents that completed: a skipped parent has no key there.
create function pgflow._unmet_conditions(run_id uuid)
returns table (step_slug text, step_index integer, when_unmet text)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select st.step_slug, st.step_index, st.when_unmet
  from pgflow.step_states as s
  join pgflow.steps as st on st.flow_slug = s.flow_slug and st.step_slug = s.step_slug
  join pgflow.runs as r on r.run_id = s.run_id
  cross join lateral (
    select
      case
        when st.deps_count = 0 then r.input
        else coalesce(
          (
            select jsonb_object_agg(parent.step_slug, parent.output)
            from pgflow.deps as d
            join pgflow.step_states as parent
              on parent.run_id = s.run_id and parent.step_slug = d.dep_slug
            where d.flow_slug = s.flow_slug
            and d.step_slug = s.step_slug
            and parent.status = 'completed'
          ),
          '{}'
        )
      end as subject
    offset 0
  ) as tested
  where s.run_id = _unmet_conditions.run_id
  and s.status = 'created'
  and s.remaining_deps = 0
  and num_nonnulls(st.required_input_pattern, st.forbidden_input_pattern) > 0
  and not (
    coalesce(tested.subject @> st.required_input_pattern, true)
    and not coalesce(tested.subject @> st.forbidden_input_pattern, false)
  );
end;
$$;

comment on function pgflow._unmet_conditions(uuid) is
'The ready steps of a run whose required pattern is missing from their input or whose forbidden one is in it.';
