-- Archives the message of one task, if it has one.
-- Locks: the message. Comes after all locks on task rows.
create function pgflow._archive_task_message(
  p_run_id uuid,
  p_step_slug text,
  p_task_index integer
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task record;
begin
  select t.flow_slug, t.message_id into v_task
  from pgflow.step_tasks as t
  where t.run_id = p_run_id and t.step_slug = p_step_slug and t.task_index = p_task_index;

  if v_task.message_id is not null then
    perform pgmq.archive(v_task.flow_slug, v_task.message_id);
  end if;
end;
$$;

comment on function pgflow._archive_task_message(uuid, text, integer) is
'Archives the message of a task; without a task or a message nothing happens.';
