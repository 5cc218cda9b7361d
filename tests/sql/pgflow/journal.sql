-- Writes down in which order a call ends rows, tells of it and archives messages.
create table public.journal (
  entry_id bigint generated always as identity primary key,
  entry text not null
);

create function public.note_status()
returns trigger
language plpgsql
volatile
set search_path = ''
as $$
declare
  v_new constant jsonb := to_jsonb(new);
begin
  insert into public.journal (entry)
  values (concat_ws(' ', tg_argv[0], v_new ->> 'step_slug', v_new ->> 'task_index', new.status));
  return null;
end;
$$;

create trigger note_status after update on pgflow.runs
for each row when (old.status <> new.status) execute function public.note_status('run');
create trigger note_status after update on pgflow.step_states
for each row when (old.status <> new.status) execute function public.note_status('step');
create trigger note_status after update on pgflow.step_tasks
for each row when (old.status <> new.status) execute function public.note_status('task');

create function public.note_event()
returns trigger
language plpgsql
volatile
set search_path = ''
as $$
begin
  insert into public.journal (entry) values ('event ' || new.event);
  return null;
end;
$$;

create trigger note_event after insert on realtime.messages
for each row execute function public.note_event();

create or replace function pgmq.archive(queue_name text, msg_ids bigint[])
returns setof bigint
language plpgsql
volatile
set search_path = ''
as $$
begin
  insert into public.journal (entry) values (format('archive %s', archive.msg_ids));
  return query select i.msg_id from unnest(archive.msg_ids) as i (msg_id);
end;
$$;

create or replace function pgmq.archive(queue_name text, msg_id bigint)
returns boolean
language plpgsql
volatile
set search_path = ''
as $$
begin
  insert into public.journal (entry) values (format('archive {%s}', archive.msg_id));
  return true;
end;
$$;
