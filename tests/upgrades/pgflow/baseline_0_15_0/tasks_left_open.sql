-- expect: accepted
-- What 0.15.0 leaves behind: open tasks under failed runs and skipped steps. They end, and nothing else does.

select pgflow.create_flow('fails', max_attempts => 1);
select pgflow.add_step('fails', 'each', step_type => 'map');
select pgflow.create_flow('skips', max_attempts => 1);
select pgflow.add_step('skips', 'each', step_type => 'map', when_exhausted => 'skip');
select pgflow.add_step('skips', 'last', deps_slugs => array['each']);
select pgflow.create_flow('lives');
select pgflow.add_step('lives', 'one');
select pgflow.add_step('lives', 'two', deps_slugs => array['one']);
insert into pgflow.workers (worker_id, queue_name, function_name)
values ('00000000-0000-0000-0000-00000000000a', 'fails', 'w');

select pgflow.start_flow('fails', '["a", "b", "c", "d"]', '00000000-0000-0000-0000-000000000001');
select pgflow.start_flow('skips', '["a", "b", "c"]', '00000000-0000-0000-0000-000000000002');
select pgflow.start_flow('lives', '{"n": 9007199254740993}', '00000000-0000-0000-0000-000000000003');
select pgflow.start_flow('lives', 'null', '00000000-0000-0000-0000-000000000004');

-- One element done, one fails for good, one is with a worker, one waits.
select pgflow.start_tasks('fails', array[1, 2, 3], '00000000-0000-0000-0000-00000000000a');
select pgflow.complete_task('00000000-0000-0000-0000-000000000001', 'each', 0, '"done"');
select pgflow.fail_task('00000000-0000-0000-0000-000000000001', 'each', 1, 'boom');
select pgflow.start_tasks('skips', array[1, 2], '00000000-0000-0000-0000-00000000000a');
select pgflow.fail_task('00000000-0000-0000-0000-000000000002', 'each', 0, 'boom');
select pgflow.start_tasks('lives', array[1], '00000000-0000-0000-0000-00000000000a');

-- A task without a message, and one that recovery gave up.
insert into pgflow.step_tasks (flow_slug, run_id, step_slug, task_index, status, attempts_count, started_at)
values ('fails', '00000000-0000-0000-0000-000000000001', 'each', 4, 'started', 2, now());
insert into pgflow.step_tasks (
  flow_slug, run_id, step_slug, task_index, status, started_at, requeued_count, permanently_stalled_at
)
values ('lives', '00000000-0000-0000-0000-000000000003', 'one', 1, 'started', now(), 3, now());

do $$
begin
  if (
    select array_agg(t.status order by t.run_id, t.task_index) from pgflow.step_tasks as t
    where t.flow_slug in ('fails', 'skips') and t.step_slug = 'each'
  ) <> '{completed,failed,started,queued,started,failed,started,queued}' then
    raise exception 'these are not the rows that 0.15.0 leaves';
  end if;
end;
$$;

-- then:
select array_agg(t.status order by t.task_index) = '{completed,failed,cancelled,cancelled,cancelled}'
from pgflow.step_tasks as t where t.run_id = '00000000-0000-0000-0000-000000000001';
select array_agg(t.status order by t.task_index) = '{failed,skipped,skipped}'
from pgflow.step_tasks as t
where t.run_id = '00000000-0000-0000-0000-000000000002' and t.step_slug = 'each';
-- Attempts, times, workers and messages of a cancelled task stay as they were.
select t.attempts_count = 1 and t.started_at is not null and t.last_worker_id is not null and t.message_id = 3
  and num_nonnulls(t.completed_at, t.failed_at, t.error_message, t.output) = 0
from pgflow.step_tasks as t
where t.run_id = '00000000-0000-0000-0000-000000000001' and t.task_index = 2;
-- Live runs are as they were.
select array_agg(t.status order by t.run_id, t.task_index) = '{started,started,queued}'
from pgflow.step_tasks as t where t.flow_slug = 'lives';
select count(*) = 2 from pgmq.q_lives;
select count(*) = 0 from pgmq.q_fails;
select count(*) = 4 from pgmq.a_fails;
-- The skipped step's child waits in its queue, and the run can be finished.
select t.status = 'queued' from pgflow.step_tasks as t where t.step_slug = 'last';
select c.input = '{}' from pgflow.start_tasks('skips', array[4], '00000000-0000-0000-0000-00000000000a') as c;
select t.status = 'completed'
from pgflow.complete_task('00000000-0000-0000-0000-000000000002', 'last', 0, '0') as t;
select r.status = 'completed' and r.output = '{"last": 0}'
from pgflow.runs as r where r.run_id = '00000000-0000-0000-0000-000000000002';
-- A late callback changes nothing.
select t.status = 'cancelled'
from pgflow.fail_task('00000000-0000-0000-0000-000000000001', 'each', 2, 'late') as t;
