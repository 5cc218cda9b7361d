create table pgflow.step_states (
  flow_slug text not null,
  run_id uuid not null,
  step_slug text not null,
  status text not null default 'created',
  initial_tasks integer,
  remaining_tasks integer,
  remaining_deps integer not null default 0,
  output jsonb,
  error_message text,
  skip_reason text,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  completed_at timestamptz,
  failed_at timestamptz,
  skipped_at timestamptz,
  constraint step_states_pkey primary key (run_id, step_slug),
  constraint step_states_flow_slug_fkey foreign key (flow_slug)
  references pgflow.flows (flow_slug),
  constraint step_states_run_id_fkey foreign key (run_id) references pgflow.runs (run_id),
  constraint step_states_flow_slug_step_slug_fkey foreign key (flow_slug, step_slug)
  references pgflow.steps (flow_slug, step_slug),
  constraint status_is_valid check (
    status in ('created', 'started', 'completed', 'failed', 'skipped')
  ),
  -- A null count would satisfy a plain equality: a completed step has exactly 0 tasks left.
  constraint status_and_remaining_tasks_match check (
    status <> 'completed' or remaining_tasks is not distinct from 0
  ),
  constraint remaining_tasks_state_consistency check (
    remaining_tasks is null or status not in ('created', 'skipped')
  ),
  constraint initial_tasks_known_when_started check (
    status <> 'started' or initial_tasks is not null
  ),
  constraint step_states_initial_tasks_check check (initial_tasks is null or initial_tasks >= 0),
  constraint step_states_remaining_deps_check check (remaining_deps >= 0),
  constraint output_only_for_completed_or_null check (output is null or status = 'completed'),
  constraint skip_reason_matches_status check (
    (skip_reason is not null) = (status = 'skipped')
  ),
  constraint completed_at_or_failed_at_or_skipped_at check (
    num_nonnulls(completed_at, failed_at, skipped_at) <= 1
  ),
  constraint started_at_is_after_created_at check (
    started_at is null or started_at >= created_at
  ),
  constraint completed_at_is_after_started_at check (
    completed_at is null or completed_at >= started_at
  ),
  constraint failed_at_is_after_started_at check (failed_at is null or failed_at >= started_at),
  constraint skipped_at_is_after_created_at check (
    skipped_at is null or skipped_at >= created_at
  )
);

create index idx_step_states_ready on pgflow.step_states (run_id, status, remaining_deps)
where status = 'created' and remaining_deps = 0;
create index idx_step_states_failed on pgflow.step_states (run_id, step_slug)
where status = 'failed';
create index idx_step_states_skipped on pgflow.step_states (run_id, step_slug)
where status = 'skipped';
create index idx_step_states_flow_slug on pgflow.step_states (flow_slug);
create index idx_step_states_run_id on pgflow.step_states (run_id);

comment on table pgflow.step_states is
'Where each step of a run stands.';
comment on column pgflow.step_states.initial_tasks is
'Planned number of tasks; null while unknown, as for a map whose parent has not ended.';
comment on column pgflow.step_states.remaining_tasks is
'Tasks still to end; null until the step has started.';
comment on column pgflow.step_states.remaining_deps is
'Parents that are neither completed nor skipped; the step is ready at 0.';
comment on column pgflow.step_states.output is
'Written together with the status completed; null is a legal output.';
comment on column pgflow.step_states.skip_reason is
'condition_unmet, handler_failed or dependency_skipped; null unless the step was skipped.';
