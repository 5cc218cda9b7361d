create table pgflow.steps (
  flow_slug text not null,
  step_slug text not null,
  step_type text not null default 'single',
  step_index integer not null default 0,
  deps_count integer not null default 0,
  opt_max_attempts integer,
  opt_base_delay integer,
  opt_timeout integer,
  opt_start_delay integer,
  required_input_pattern jsonb,
  forbidden_input_pattern jsonb,
  when_unmet text not null default 'skip',
  when_exhausted text not null default 'fail',
  created_at timestamptz not null default now(),
  constraint steps_pkey primary key (flow_slug, step_slug),
  constraint steps_flow_slug_step_index_key unique (flow_slug, step_index),
  constraint steps_flow_slug_fkey foreign key (flow_slug) references pgflow.flows (flow_slug),
  constraint steps_step_slug_check check (pgflow.is_valid_slug(step_slug)),
  constraint steps_step_type_check check (step_type in ('single', 'map')),
  constraint steps_deps_count_check check (deps_count >= 0),
  constraint opt_max_attempts_is_nonnegative check (
    opt_max_attempts is null or opt_max_attempts >= 0
  ),
  constraint opt_base_delay_is_nonnegative check (opt_base_delay is null or opt_base_delay >= 0),
  constraint opt_start_delay_is_nonnegative check (
    opt_start_delay is null or opt_start_delay >= 0
  ),
  constraint opt_timeout_is_positive check (opt_timeout is null or opt_timeout > 0),
  constraint required_input_pattern_is_object check (
    required_input_pattern is null or jsonb_typeof(required_input_pattern) = 'object'
  ),
  constraint forbidden_input_pattern_is_object check (
    forbidden_input_pattern is null or jsonb_typeof(forbidden_input_pattern) = 'object'
  ),
  constraint when_unmet_is_valid check (when_unmet in ('fail', 'skip', 'skip-cascade')),
  constraint when_exhausted_is_valid check (when_exhausted in ('fail', 'skip', 'skip-cascade'))
);

comment on table pgflow.steps is
'Steps of a flow''s definition.';
comment on column pgflow.steps.step_type is
'single: one task. map: one for each element of its parent''s output, or of the run''s input.';
comment on column pgflow.steps.step_index is
'Position in the order of definition, which is a topological order.';
comment on column pgflow.steps.deps_count is
'Number of parents.';
comment on column pgflow.steps.opt_max_attempts is
'How often a task is tried in all; null takes the flow''s value.';
comment on column pgflow.steps.opt_base_delay is
'Seconds that the back-off starts from; null takes the flow''s value.';
comment on column pgflow.steps.opt_timeout is
'Seconds that a claimed task has; null takes the flow''s value.';
comment on column pgflow.steps.opt_start_delay is
'Seconds between a step''s start and the visibility of its messages; null is 0.';
comment on column pgflow.steps.required_input_pattern is
'The step runs only if its input contains this object; null sets no condition.';
comment on column pgflow.steps.forbidden_input_pattern is
'The step runs only if its input does not contain this object; null sets no condition.';
comment on column pgflow.steps.when_unmet is
'What an unmet condition does: fail the run, skip the step, or skip its dependants too.';
comment on column pgflow.steps.when_exhausted is
'What the last failed attempt does: fail the run, skip the step, or skip its dependants too.';
