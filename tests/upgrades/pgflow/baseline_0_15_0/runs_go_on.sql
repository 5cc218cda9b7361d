-- expect: accepted
-- A run half done under 0.15.0 is finished by 0.16.0, with a claim that hides its message for the step's timeout.

select pgflow.create_flow('MyFlow', timeout => 60);
select pgflow.add_step('MyFlow', 'list');
select pgflow.add_step('MyFlow', 'each', deps_slugs => array['list'], step_type => 'map', timeout => 10);
select pgflow.add_step('MyFlow', 'sum', deps_slugs => array['each']);
insert into pgflow.workers (worker_id, queue_name, function_name)
values ('00000000-0000-0000-0000-00000000000a', 'MyFlow', 'w');
select pgflow.start_flow('MyFlow', '{}', '00000000-0000-0000-0000-000000000001');
select pgflow.start_tasks('MyFlow', array[1], '00000000-0000-0000-0000-00000000000a');

-- then:
select t.status = 'completed'
from pgflow.complete_task('00000000-0000-0000-0000-000000000001', 'list', 0, '[1, 2]') as t;
select array_agg(c.input order by c.task_index) = array['1', '2']::jsonb[]
from pgflow.start_tasks('MyFlow', array[2, 3], '00000000-0000-0000-0000-00000000000a') as c;
select bool_and(q.vt between now() + interval '11 seconds' and now() + interval '60 seconds')
from pgmq.q_myflow as q;
select t.status = 'completed'
from pgflow.complete_task('00000000-0000-0000-0000-000000000001', 'each', 1, '20') as t;
select t.status = 'completed'
from pgflow.complete_task('00000000-0000-0000-0000-000000000001', 'each', 0, '10') as t;
select c.input = '{"each": [10, 20]}'
from pgflow.start_tasks('MyFlow', array[4], '00000000-0000-0000-0000-00000000000a') as c;
select t.status = 'completed'
from pgflow.complete_task('00000000-0000-0000-0000-000000000001', 'sum', 0, '30') as t;
select r.status = 'completed' and r.output = '{"sum": 30}' from pgflow.runs as r;
select pgflow.ensure_flow_compiled('MyFlow', pgflow._get_flow_shape('MyFlow')) ->> 'status' = 'verified';
select to_regprocedure('pgflow.ensure_flow_compiled(text, jsonb, boolean)') is null;
