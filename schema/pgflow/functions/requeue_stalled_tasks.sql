-- Puts tasks back into their queue whose worker has not answered in time; gives them up after three
-- times.
-- Locks: the task rows in the order of their key, leaving out those that a callback holds, then
-- their messages. Runs and steps are read, not locked.
-- security definer: run by a scheduler or a worker without rights on the tables.
-- Plans are kept, and go by index: planning anew reads the ends of indexes, where under load the
-- dead rows are, and a plan from the time when a table was small scans all of it until it is
-- analysed.
create function pgflow.requeue_stalled_tasks()
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_requeued integer := 0;
  v_flow_slug text;
begin
  -- The table of runs before that of tasks, in the order in which a migration locks them.
  perform from pgflow.runs where false;
  for v_flow_slug in
    select distinct t.flow_slug
    from pgflow.step_tasks as t
    where t.status = 'started'
    and t.permanently_stalled_at is null
    and t.started_at < now() - interval '30 seconds'
    order by t.flow_slug
  loop
    -- A queue that is gone or out of reach stops its own flow only.
    begin
      v_requeued := v_requeued + pgflow._requeue_stalled_tasks_of(v_flow_slug);
    exception
      when others then
        raise warning using
          errcode = sqlstate,
          message = format('stalled tasks of flow %s stay as they are: %s', v_flow_slug, sqlerrm);
    end;
  end loop;
  return v_requeued;
end;
$$;

comment on function pgflow.requeue_stalled_tasks() is
'Requeues started tasks of live runs that are 30 seconds past their timeout, three times each, then marks them permanently stalled and archives their message; how many were requeued. Runs with the owner''s rights.';
