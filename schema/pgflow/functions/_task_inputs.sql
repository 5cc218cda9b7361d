-- Gives claimed tasks what their handlers need.
-- Locks: nothing.
-- An array is appended to an empty one: that takes it out of its compressed form once a step, not
-- once for each of the elements that are picked from it.
create function pgflow._task_inputs(
  flow_slug text,
  run_ids uuid[],
  step_slugs text[],
  task_indexes integer[],
  message_ids bigint[]
)
returns setof pgflow.step_task_record
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  with claimed as materialized (
    select c.run_id, c.step_slug, c.task_index, c.message_id
    from unnest(
      _task_inputs.run_ids,
      _task_inputs.step_slugs,
      _task_inputs.task_indexes,
      _task_inputs.message_ids
    ) as c (run_id, step_slug, task_index, message_id)
  ),
  sources as materialized (
    select
      c.run_id,
      c.step_slug,
      st.step_type = 'map' as is_map,
      case
        when st.step_type = 'map' and st.deps_count = 0 then r.input || '[]'
        when st.step_type = 'map' then parents.only_output || '[]'
        else coalesce(parents.outputs, '{}')
      end as input,
      case when st.step_type <> 'map' and st.deps_count = 0 then r.input end as flow_input
    from (select distinct k.run_id, k.step_slug from claimed as k) as c
    join pgflow.runs as r on r.run_id = c.run_id
    join pgflow.steps as st
      on st.flow_slug = _task_inputs.flow_slug and st.step_slug = c.step_slug
    left join lateral (
      select
        jsonb_object_agg(d.dep_slug, s.output) filter (where st.step_type <> 'map') as outputs,
        (array_agg(s.output) filter (where st.step_type = 'map'))[1] as only_output
      from pgflow.deps as d
      join pgflow.step_states as s on s.run_id = c.run_id and s.step_slug = d.dep_slug
      where d.flow_slug = st.flow_slug
      and d.step_slug = st.step_slug
      and s.status = 'completed'
    ) as parents on st.deps_count > 0
  )
  select
    _task_inputs.flow_slug,
    c.run_id,
    c.step_slug,
    case when s.is_map then s.input -> c.task_index else s.input end,
    c.message_id,
    c.task_index,
    s.flow_input
  from claimed as c
  join sources as s on s.run_id = c.run_id and s.step_slug = c.step_slug;
end;
$$;

comment on function pgflow._task_inputs(text, uuid[], text[], integer[], bigint[]) is
'The records that start_tasks returns: a map''s task gets its element, others the outputs of the parents that completed.';
