-- Deletes a flow with its steps, its runs and its queue, which stays when another flow uses it; a
-- slug that no flow has, in exactly this spelling, touches nothing.
-- Locks: the flow's row (for no key update), its runs, step states and tasks in key order, then the
-- queue's name as create_flow does, then the queue's tables.
-- A callback that starts the next step holds its run while a foreign key takes the flow's row for
-- key share. So the row is locked in a mode that lets key checks through until the runs are held.
create function pgflow.delete_flow_and_data(p_flow_slug text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message_ids bigint[];
  v_queue_name text;
begin
  if not pgflow._hold_flow(p_flow_slug, exclusively => true) then
    return;
  end if;

  perform from pgflow.runs as r
  where r.flow_slug = p_flow_slug
  order by r.run_id
  for update;

  perform from pgflow.step_states as s
  where s.flow_slug = p_flow_slug
  order by s.run_id, s.step_slug
  for update;

  perform from pgflow.step_tasks as t
  where t.flow_slug = p_flow_slug
  order by t.run_id, t.step_slug, t.task_index
  for update;

  v_message_ids := array(
    select t.message_id
    from pgflow.step_tasks as t
    where t.flow_slug = p_flow_slug and t.status in ('queued', 'started')
  );

  delete from pgflow.step_tasks as t where t.flow_slug = p_flow_slug;
  delete from pgflow.step_states as s where s.flow_slug = p_flow_slug;
  delete from pgflow.runs as r where r.flow_slug = p_flow_slug;
  delete from pgflow.deps as d where d.flow_slug = p_flow_slug;
  delete from pgflow.steps as s where s.flow_slug = p_flow_slug;
  delete from pgflow.flows as f where f.flow_slug = p_flow_slug;

  perform pg_catalog.pg_advisory_xact_lock(
    pg_catalog.hashtext('pgmq.queue_' || lower(p_flow_slug))
  );
  if exists (select from pgflow.flows as f where lower(f.flow_slug) = lower(p_flow_slug)) then
    perform pgmq.delete(p_flow_slug, v_message_ids);
    return;
  end if;

  -- PGMQ drops the tables of a queue in any spelling, but the entry of the given one only.
  select m.queue_name
  into v_queue_name
  from pgmq.meta as m
  where lower(m.queue_name) = lower(p_flow_slug)
  order by m.is_partitioned desc, m.queue_name = p_flow_slug desc, m.queue_name
  limit 1;
  -- PGMQ looks for the tables among those that the caller has rights on, and says no more than false.
  -- It drops no archive whose queue is gone.
  if not pgmq.drop_queue(coalesce(v_queue_name, p_flow_slug)) then
    if to_regclass(format('pgmq.%I', pgmq.format_table_name(p_flow_slug, 'q'))) is not null then
      raise exception using
        errcode = 'insufficient_privilege',
        message = format('queue of flow %s exists, but this role cannot drop it', p_flow_slug),
        hint = 'Delete the flow as the role that made it.';
    end if;
    execute format(
      'drop table if exists pgmq.%I', pgmq.format_table_name(p_flow_slug, 'a')
    );
  end if;
  delete from pgmq.meta as m where lower(m.queue_name) = lower(p_flow_slug);
end;
$$;

comment on function pgflow.delete_flow_and_data(text) is
'Deletes a flow, all its data and its queue. Where the slug of another flow folds to the same '
'queue, the queue stays and only the messages of the flow''s open tasks go.';
