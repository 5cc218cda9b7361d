-- Deletes what is older than a retention: workers by their heartbeat, ended runs with all that is theirs,
-- and archived messages. An option: no migration installs it. Copy it, and call it from a scheduler:
--   select pgflow.prune_data_older_than(interval '30 days');
-- Locks: the flows' rows (share: a deletion waits, or is waited for), the ended runs, their step states,
-- the old workers, the runs' tasks, each in key order; then messages.
-- It waits for no task of a run that goes on: a worker whose task a callback holds stays for the next call.
create or replace function pgflow.prune_data_older_than(retention_interval interval)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_cutoff timestamptz := now() - prune_data_older_than.retention_interval;
  v_flow_slugs text[];
  v_run_ids uuid[];
  v_worker_ids uuid[];
  v_flow record;
begin
  if v_cutoff is null or v_cutoff > now() then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format(
        'retention must not be negative or null, got %s',
        coalesce(prune_data_older_than.retention_interval::text, 'null')
      ),
      hint = 'Pass an interval such as interval ''30 days''.';
  end if;

  -- Key share would let a deletion have the flow's row and then wait for our runs, as we for its row.
  v_flow_slugs := array(
    select f.flow_slug from pgflow.flows as f order by f.flow_slug for share
  );

  with ended as (
    select r.run_id
    from pgflow.runs as r
    where r.completed_at < v_cutoff or r.failed_at < v_cutoff
    order by r.run_id
    for update
  )
  select coalesce(array_agg(e.run_id), '{}') into v_run_ids from ended as e;

  perform from pgflow.step_states as s
  where s.run_id = any(v_run_ids)
  order by s.run_id, s.step_slug
  for update;

  -- With its row locked, a worker claims nothing more.
  with old as (
    select w.worker_id
    from pgflow.workers as w
    where w.last_heartbeat_at < v_cutoff
    order by w.worker_id
    for update
  )
  select coalesce(array_agg(o.worker_id), '{}') into v_worker_ids from old as o;

  perform from pgflow.step_tasks as t
  where t.run_id = any(v_run_ids)
  order by t.run_id, t.step_slug, t.task_index
  for update;

  if v_worker_ids <> '{}' then
    with free as (
      select t.run_id, t.step_slug, t.task_index
      from pgflow.step_tasks as t
      where t.last_worker_id = any(v_worker_ids)
      order by t.run_id, t.step_slug, t.task_index
      for update skip locked
    )
    update pgflow.step_tasks as t
    set last_worker_id = null
    from free as k
    where t.run_id = k.run_id and t.step_slug = k.step_slug and t.task_index = k.task_index;

    delete from pgflow.workers as w
    where w.worker_id = any(v_worker_ids)
    and not exists (select from pgflow.step_tasks as t where t.last_worker_id = w.worker_id);
  end if;

  for v_flow in
    with pruned as (
      delete from pgflow.step_tasks as t
      where t.run_id = any(v_run_ids)
      returning t.flow_slug, t.message_id
    )
    select
      p.flow_slug,
      array_agg(p.message_id order by p.message_id) as message_ids
    from pruned as p
    where p.message_id is not null
    and to_regclass(format('pgmq.%I', 'q_' || lower(p.flow_slug))) is not null
    group by p.flow_slug
    order by p.flow_slug
  loop
    perform pgmq.delete(v_flow.flow_slug, v_flow.message_ids);
  end loop;

  delete from pgflow.step_states as s where s.run_id = any(v_run_ids);
  delete from pgflow.runs as r where r.run_id = any(v_run_ids);

  for v_flow in
    select distinct archive.name
    from unnest(v_flow_slugs) as f (flow_slug)
    cross join lateral (select 'a_' || lower(f.flow_slug) as name) as archive
    where to_regclass(format('pgmq.%I', archive.name)) is not null
    order by archive.name
  loop
    execute format('delete from pgmq.%I where archived_at < $1', v_flow.name) using v_cutoff;
  end loop;
end;
$$;

comment on function pgflow.prune_data_older_than(interval) is
'Deletes workers, ended runs and archived messages older than retention_interval; started runs and definitions stay.';
