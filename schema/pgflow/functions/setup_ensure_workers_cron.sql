-- Lets pg_cron start missing workers, and clean its log every hour.
-- Locks: pg_cron's own rows, none of pgflow's.
-- Security definer: jobs are to run as pgflow's owner. Callers need rights on schema pgflow.
create function pgflow.setup_ensure_workers_cron(cron_interval text default '1 second')
returns text
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select concat_ws(
    '; ',
    pgflow._schedule_cron_job(
      'pgflow_ensure_workers',
      setup_ensure_workers_cron.cron_interval,
      'select pgflow.ensure_workers()'
    ),
    pgflow._schedule_cron_job(
      'pgflow_cleanup_logs',
      '0 * * * *',
      'select pgflow.cleanup_ensure_workers_logs()'
    )
  );
$$;

comment on function pgflow.setup_ensure_workers_cron(text) is
'Schedules pgflow_ensure_workers and pgflow_cleanup_logs; returns what it did, or why not.';
