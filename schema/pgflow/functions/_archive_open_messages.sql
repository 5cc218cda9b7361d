-- Archives the messages of what is still open in a run, or in some of its steps; the tasks stay as
-- they are.
-- Locks: the queued and started tasks, in the order of their key, then their messages.
create function pgflow._archive_open_messages(run_id uuid, step_slugs text[])
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
    select t.flow_slug, t.message_id
    from pgflow.step_tasks as t
    where t.run_id = _archive_open_messages.run_id
    and t.status in ('queued', 'started')
    and (
      _archive_open_messages.step_slugs is null
      or t.step_slug = any(_archive_open_messages.step_slugs)
    )
    order by t.step_slug, t.task_index
    for update
  )
  select min(o.flow_slug), array_agg(o.message_id) filter (where o.message_id is not null)
  into v_flow_slug, v_message_ids
  from open_tasks as o;

  perform pgflow._archive_messages(v_flow_slug, v_message_ids);
end;
$$;

comment on function pgflow._archive_open_messages(uuid, text[]) is
'Archives the messages of the queued and started tasks of a run; of all its steps when step_slugs is null.';
