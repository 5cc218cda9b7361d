-- Recovers the tasks of one flow.
-- Locks: the flow's stalled tasks in the order of their key, leaving out those that a callback
-- holds, then their messages. Runs and steps are read, not locked.
create function pgflow._requeue_stalled_tasks_of(p_flow_slug text)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_max_requeues constant integer := 3;
  c_grace constant interval := interval '30 seconds';
  v_requeued integer;
  v_visible_ids bigint[];
  v_stalled_ids bigint[];
begin
  with stalled as materialized (
    select t.run_id, t.step_slug, t.task_index
    from pgflow.runs as r
    join pgflow.step_states as s on s.run_id = r.run_id
    join pgflow.step_tasks as t on t.run_id = s.run_id and t.step_slug = s.step_slug
    join pgflow.steps as st on st.flow_slug = t.flow_slug and st.step_slug = t.step_slug
    join pgflow.flows as f on f.flow_slug = t.flow_slug
    -- What is appended hides the flow from the planner: started tasks are few, a flow's are not.
    where t.flow_slug || '' = p_flow_slug
    and t.status = 'started'
    and t.permanently_stalled_at is null
    and r.status = 'started'
    and s.status = 'started'
    and t.started_at < now() - c_grace
    and t.started_at
      < now() - c_grace - make_interval(secs => coalesce(st.opt_timeout, f.opt_timeout))
    order by t.run_id, t.step_slug, t.task_index
    for update of t skip locked
  ),
  handled as (
    update pgflow.step_tasks as t
    set
      status = case when t.requeued_count < c_max_requeues then 'queued' else t.status end,
      started_at = case when t.requeued_count >= c_max_requeues then t.started_at end,
      last_worker_id = case when t.requeued_count >= c_max_requeues then t.last_worker_id end,
      requeued_count = least(t.requeued_count + 1, c_max_requeues),
      last_requeued_at = case
        when t.requeued_count < c_max_requeues then now()
        else t.last_requeued_at
      end,
      permanently_stalled_at = case when t.requeued_count >= c_max_requeues then now() end
    from stalled as k
    where t.run_id = k.run_id
    and t.step_slug = k.step_slug
    and t.task_index = k.task_index
    returning t.message_id, t.status
  )
  select
    count(*) filter (where h.status = 'queued'),
    array_agg(h.message_id) filter (
      where h.status = 'queued' and h.message_id is not null
    ),
    array_agg(h.message_id) filter (
      where h.status = 'started' and h.message_id is not null
    )
  into v_requeued, v_visible_ids, v_stalled_ids
  from handled as h;

  if v_visible_ids is not null then
    perform pgflow.set_vt_batch(
      p_flow_slug,
      v_visible_ids,
      array_fill(0, array[cardinality(v_visible_ids)])
    );
  end if;
  perform pgflow._archive_messages(p_flow_slug, v_stalled_ids);
  return v_requeued;
end;
$$;

comment on function pgflow._requeue_stalled_tasks_of(text) is
'Requeues the stalled tasks of a flow, gives up those that were requeued three times, and returns how many were requeued.';
