create type pgflow.step_task_record as (
  flow_slug text,
  run_id uuid,
  step_slug text,
  input jsonb,
  msg_id bigint,
  task_index integer,
  flow_input jsonb
);

comment on type pgflow.step_task_record is
'One claimed task, with all that its handler needs.';
comment on column pgflow.step_task_record.input is
'For a map step its element; else an object with the output of each completed parent.';
comment on column pgflow.step_task_record.msg_id is
'The PGMQ message that announced the task; unique within its queue only.';
comment on column pgflow.step_task_record.flow_input is
'The run''s input for a single step without parents; null otherwise.';
