-- expect: refused 23514
-- message: new row for relation "step_tasks" violates check constraint "known_statuses"
-- Somebody's own check does not know the states that the repair sets: nothing may be changed.

alter table pgflow.step_tasks add constraint known_statuses
check (status in ('queued', 'started', 'completed', 'failed'));
select pgflow.create_flow('f', max_attempts => 1);
select pgflow.add_step('f', 'a', step_type => 'map');
select pgflow.start_flow('f', '[1, 2]', '00000000-0000-0000-0000-000000000001');
insert into pgflow.workers (worker_id, queue_name, function_name)
values ('00000000-0000-0000-0000-00000000000a', 'f', 'w');
select pgflow.start_tasks('f', array[1], '00000000-0000-0000-0000-00000000000a');
select pgflow.fail_task('00000000-0000-0000-0000-000000000001', 'a', 0, 'boom');

-- then:
select array_agg(t.status order by t.task_index) = '{failed,queued}' from pgflow.step_tasks as t;
