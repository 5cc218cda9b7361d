-- Deletes what pg_cron has kept of runs that ended long ago, whichever job they were of.
-- Locks: the rows it deletes, none of pgflow's.
-- Security definer: the log belongs to pg_cron. Callers need rights on schema pgflow.
create function pgflow.cleanup_ensure_workers_logs(retention_hours integer default 24)
returns table (cron_deleted bigint)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  cleanup_ensure_workers_logs.cron_deleted := 0;
  if exists (
    select from pg_class as c
    where c.relname = 'job_run_details' and c.relnamespace = to_regnamespace('cron')
  ) then
    execute $sql$
      delete from cron.job_run_details as d where d.end_time < now() - make_interval(hours => $1)
    $sql$ using cleanup_ensure_workers_logs.retention_hours;
    get diagnostics cron_deleted = row_count;
  end if;
  return next;
end;
$$;

comment on function pgflow.cleanup_ensure_workers_logs(integer) is
'Deletes pg_cron''s log rows older than retention_hours; returns how many, 0 without pg_cron.';
