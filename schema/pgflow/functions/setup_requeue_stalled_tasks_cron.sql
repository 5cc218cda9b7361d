-- Lets pg_cron give stalled tasks back to their queues.
-- Locks: pg_cron's own rows, none of pgflow's.
-- Security definer: the job is to run as pgflow's owner. Callers need rights on schema pgflow.
create function pgflow.setup_requeue_stalled_tasks_cron(cron_interval text default '15 seconds')
returns text
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select pgflow._schedule_cron_job(
    'pgflow_requeue_stalled_tasks',
    setup_requeue_stalled_tasks_cron.cron_interval,
    'select pgflow.requeue_stalled_tasks()'
  );
$$;

comment on function pgflow.setup_requeue_stalled_tasks_cron(text) is
'Schedules pgflow_requeue_stalled_tasks; returns what it did, or why not.';
