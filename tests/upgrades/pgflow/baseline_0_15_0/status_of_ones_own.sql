-- expect: refused SL100
-- message: rows break the new check valid_status of pgflow.step_tasks
-- through: task_lifecycle_0_15_1
-- Somebody widened the check by hand and has rows that the new one does not know.

alter table pgflow.step_tasks drop constraint valid_status;
alter table pgflow.step_tasks add constraint valid_status
check (status in ('queued', 'started', 'completed', 'failed', 'paused'));
select pgflow.create_flow('f');
select pgflow.add_step('f', 'a');
select pgflow.start_flow('f', '{}');
update pgflow.step_tasks set status = 'paused';

-- then:
select t.status = 'paused' from pgflow.step_tasks as t;
