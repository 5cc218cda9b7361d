-- Tells the children of steps that are done that they wait for that many parents less.
-- Locks: the children's states. The caller holds the run's row.
create function pgflow._release_dependents(run_id uuid, parent_slugs text[], map_size integer)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_released integer;
begin
  update pgflow.step_states as s
  set
    remaining_deps = s.remaining_deps - child.parents_done,
    initial_tasks = case
      when child.step_type = 'map' then coalesce(s.initial_tasks, _release_dependents.map_size)
      else s.initial_tasks
    end
  from (
    select st.step_slug, st.step_type, count(*) as parents_done
    from pgflow.runs as r
    join pgflow.deps as d on d.flow_slug = r.flow_slug
    join pgflow.steps as st on st.flow_slug = d.flow_slug and st.step_slug = d.step_slug
    where r.run_id = _release_dependents.run_id
    and d.dep_slug = any(_release_dependents.parent_slugs)
    group by st.step_slug, st.step_type
  ) as child
  where s.run_id = _release_dependents.run_id
  and s.step_slug = child.step_slug
  and s.status = 'created';

  get diagnostics v_released = row_count;
  return v_released;
end;
$$;

comment on function pgflow._release_dependents(uuid, text[], integer) is
'Counts parents that completed or were skipped down in their children, a child map gets map_size tasks; how many children there were.';
