-- What pg_cron offers to a database, as far as pgflow sees it: jobs by name and user, and a log.
create schema cron;

create table cron.job (
  jobid bigint generated always as identity primary key,
  schedule text not null,
  command text not null,
  nodename text not null default 'localhost',
  nodeport integer not null default 5432,
  database text not null default current_database(),
  username text not null default current_user,
  active boolean not null default true,
  jobname text,
  constraint jobname_username_uniq unique (jobname, username)
);

create table cron.job_run_details (
  jobid bigint,
  runid bigint generated always as identity primary key,
  job_pid integer,
  database text,
  username text,
  command text,
  status text,
  return_message text,
  start_time timestamptz,
  end_time timestamptz
);

create function cron.schedule(job_name text, schedule text, command text)
returns bigint
language sql
volatile
strict
set search_path = ''
as $$
  insert into cron.job (jobname, schedule, command)
  values (schedule.job_name, schedule.schedule, schedule.command)
  on conflict on constraint jobname_username_uniq do update
  set schedule = excluded.schedule, command = excluded.command
  returning jobid;
$$;

create function cron.unschedule(job_id bigint)
returns boolean
language plpgsql
volatile
strict
set search_path = ''
as $$
begin
  delete from cron.job where jobid = unschedule.job_id and username = current_user;
  if not found then
    raise exception 'could not find valid entry for job %', unschedule.job_id;
  end if;
  return true;
end;
$$;

create function cron.unschedule(job_name text)
returns boolean
language plpgsql
volatile
strict
set search_path = ''
as $$
begin
  delete from cron.job where jobname = unschedule.job_name and username = current_user;
  if not found then
    raise exception 'could not find valid entry for job ''%''', unschedule.job_name;
  end if;
  return true;
end;
$$;
