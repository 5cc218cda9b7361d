-- Ends what is still open in a run that failed, or in steps of it that were skipped.
-- Locks: the queued and started tasks, in the order of their key, then their messages. The caller
-- holds the run's row.
create function pgflow._end_open_tasks(run_id uuid, step_slugs text[], status text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_flow_slug text;
  v_message_ids bigint[];
begin
  with open_tasks as materialized (
    select t.step_slug, t.task_index
    from pgflow.step_tasks as t
    where t.run_id = _end_open_tasks.run_id
    and t.status in ('queued', 'started')
    and (
      _end_open_tasks.step_slugs is null
      or t.step_slug = any(_end_open_tasks.step_slugs)
    )
    order by t.step_slug, t.task_index
    for update
  ),
  ended as (
    update pgflow.step_tasks as t
    set status = _end_open_tasks.status
    from open_tasks as o
    where t.run_id = _end_open_tasks.run_id
    and t.step_slug = o.step_slug
    and t.task_index = o.task_index
    returning t.flow_slug, t.message_id
  )
  select min(e.flow_slug), array_agg(e.message_id) filter (where e.message_id is not null)
  into v_flow_slug, v_message_ids
  from ended as e;

  perform pgflow._archive_messages(v_flow_slug, v_message_ids);
end;
$$;

comment on function pgflow._end_open_tasks(uuid, text[], text) is
'Gives the queued and started tasks of a run a last status and archives their messages; of all its steps when step_slugs is null.';
