-- expect: accepted
-- A step was skipped, then its run failed: its open tasks are skipped, not cancelled, and no message is touched.

select pgflow.create_flow('f', max_attempts => 1);
select pgflow.add_step('f', 'each', step_type => 'map', when_exhausted => 'skip');
select pgflow.add_step('f', 'other', step_type => 'map');
insert into pgflow.workers (worker_id, queue_name, function_name)
values ('00000000-0000-0000-0000-00000000000a', 'f', 'w');
select pgflow.start_flow('f', '[1, 2, 3]', '00000000-0000-0000-0000-000000000001');
select pgflow.start_tasks('f', array[1, 2, 4, 5], '00000000-0000-0000-0000-00000000000a');
select pgflow.fail_task('00000000-0000-0000-0000-000000000001', 'each', 0, 'boom');
select pgflow.fail_task('00000000-0000-0000-0000-000000000001', 'other', 0, 'boom');

-- Of each step one task is started and one queued; somebody put the messages of the queued ones back.
update pgflow.step_tasks as t
set message_id = (select s.id from pgmq.send('f', jsonb_build_object('of', t.step_slug)) as s (id))
where t.status = 'queued';
create table public.tasks_before as
select t.run_id, t.step_slug, t.task_index, to_jsonb(t) as task from pgflow.step_tasks as t;
create table public.messages_before as
select q.msg_id, to_jsonb(q) as message from pgmq.q_f as q
union all
select a.msg_id, to_jsonb(a) from pgmq.a_f as a;

do $$
begin
  if (
    select array_agg(t.status order by t.step_slug, t.task_index) from pgflow.step_tasks as t
  ) <> '{failed,started,queued,failed,started,queued}' then
    raise exception 'these are not the rows that 0.15.0 leaves';
  end if;
end;
$$;

-- then:
select array_agg(t.status order by t.step_slug, t.task_index)
  = '{failed,skipped,skipped,failed,cancelled,cancelled}'
from pgflow.step_tasks as t;
-- No other column changed.
select count(*) = 6 and bool_and(to_jsonb(t) - 'status' = b.task - 'status')
from pgflow.step_tasks as t
join public.tasks_before as b using (run_id, step_slug, task_index);
-- No message was archived, deleted or hidden.
select count(*) = 2 from pgmq.q_f;
select count(*) = 6 from pgmq.a_f;
select count(*) = 8 and bool_and(n.message = b.message)
from public.messages_before as b
join (
  select q.msg_id, to_jsonb(q) as message from pgmq.q_f as q
  union all
  select a.msg_id, to_jsonb(a) from pgmq.a_f as a
) as n using (msg_id);
