create table pgflow.runs (
  run_id uuid not null default gen_random_uuid(),
  flow_slug text not null,
  status text not null default 'started',
  input jsonb not null,
  output jsonb,
  remaining_steps integer not null default 0,
  started_at timestamptz not null default now(),
  completed_at timestamptz,
  failed_at timestamptz,
  constraint runs_pkey primary key (run_id),
  constraint runs_flow_slug_fkey foreign key (flow_slug) references pgflow.flows (flow_slug),
  constraint status_is_valid check (status in ('started', 'failed', 'completed')),
  constraint runs_remaining_steps_check check (remaining_steps >= 0),
  constraint completed_at_or_failed_at check (num_nonnulls(completed_at, failed_at) <= 1),
  constraint completed_at_is_after_started_at check (
    completed_at is null or completed_at >= started_at
  ),
  constraint failed_at_is_after_started_at check (failed_at is null or failed_at >= started_at)
);

create index idx_runs_flow_slug on pgflow.runs (flow_slug);
create index idx_runs_status on pgflow.runs (status);

comment on table pgflow.runs is
'Executions of a flow.';
comment on column pgflow.runs.output is
'Outputs of the completed steps that nothing depends on, by slug; null until the run completed.';
comment on column pgflow.runs.remaining_steps is
'Steps that are neither completed nor skipped; the run completes at 0.';
