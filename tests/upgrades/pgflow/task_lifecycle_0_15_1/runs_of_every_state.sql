-- expect: accepted
-- 0.16.0 changes one function: every row, queue and message stays.

select pgflow.create_flow('f', max_attempts => 1);
select pgflow.add_step('f', 'a', step_type => 'map');
select pgflow.add_step('f', 'b', deps_slugs => array['a']);
insert into pgflow.workers (worker_id, queue_name, function_name)
values ('00000000-0000-0000-0000-00000000000a', 'f', 'w');
select pgflow.start_flow('f', '[1, 2]', '00000000-0000-0000-0000-000000000001');
select pgflow.start_flow('f', '[1, 2]', '00000000-0000-0000-0000-000000000002');
select pgflow.start_flow('f', '[]', '00000000-0000-0000-0000-000000000003');
select pgflow.start_tasks('f', array[1, 3], '00000000-0000-0000-0000-00000000000a');
select pgflow.fail_task('00000000-0000-0000-0000-000000000001', 'a', 0, 'boom');
select pgflow.ensure_flow_compiled('f', pgflow._get_flow_shape('f'), false);

-- then:
select array_agg(t.status order by t.run_id, t.step_slug, t.task_index)
  = '{failed,cancelled,started,queued,queued}'
from pgflow.step_tasks as t;
select count(*) = 3 from pgmq.q_f;
select pgflow.ensure_flow_compiled('f', pgflow._get_flow_shape('f')) = '{"status": "verified", "differences": []}';
select pgflow.ensure_flow_compiled('f', '{"steps": []}') ->> 'status' = 'mismatch';
select count(*) = 3 from pgflow.runs;
select to_regprocedure('pgflow.ensure_flow_compiled(text, jsonb, boolean)') is null;
