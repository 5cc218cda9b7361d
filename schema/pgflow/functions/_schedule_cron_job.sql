-- Gives pg_cron a job of this name in place of the one before, or says why it cannot.
-- Locks: pg_cron's own rows, none of pgflow's.
-- A name is unique for each user, and only a user's own jobs can be replaced.
-- What the database cannot do is told and no error, so that pgflow can be installed on any.
create function pgflow._schedule_cron_job(p_job_name text, p_schedule text, p_command text)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_version constant text := (
    select e.extversion from pg_extension as e where e.extname = 'pg_cron'
  );
begin
  if p_schedule is null then
    raise exception using
      errcode = 'null_value_not_allowed',
      message = format('the schedule of cron job %s must not be null', p_job_name);
  end if;
  if to_regnamespace('cron') is null then
    return format('pg_cron is not installed: job %s is not scheduled', p_job_name);
  elsif not has_schema_privilege(to_regnamespace('cron')::oid, 'usage') then
    return format(
      'role %I has no usage on schema cron: job %s is not scheduled', current_user, p_job_name
    );
  elsif to_regprocedure('cron.schedule(text, text, text)') is null then
    return format(
      'schema cron has no schedule(text, text, text): job %s is not scheduled', p_job_name
    );
  elsif p_schedule ~* 'second'
    and string_to_array(split_part(v_version, '-', 1), '.')::integer[] < '{1,5}'
  then
    return format(
      'pg_cron %s knows no seconds, 1.5 does: job %s is not scheduled', v_version, p_job_name
    );
  end if;

  begin
    execute $sql$
      select cron.unschedule(j.jobid) from cron.job as j
      where j.jobname = $1 and j.username = current_user
    $sql$ using p_job_name;
    execute 'select cron.schedule($1, $2, $3)' using p_job_name, p_schedule, p_command;
  exception
    when insufficient_privilege then
      return format('pg_cron refuses (%s): job %s is not scheduled', sqlerrm, p_job_name);
  end;
  return format('job %s is scheduled: %s', p_job_name, p_schedule);
end;
$$;

comment on function pgflow._schedule_cron_job(text, text, text) is
'Schedules a pg_cron job in place of one of the same name; returns what it did, or why not.';
