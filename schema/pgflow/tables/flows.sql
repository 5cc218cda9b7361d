create table pgflow.flows (
  flow_slug text not null,
  opt_max_attempts integer not null default 3,
  -- create_flow() writes 5: this default is for rows inserted by hand.
  opt_base_delay integer not null default 1,
  opt_timeout integer not null default 60,
  created_at timestamptz not null default now(),
  constraint flows_pkey primary key (flow_slug),
  constraint slug_is_valid check (pgflow.is_valid_slug(flow_slug)),
  constraint opt_max_attempts_is_nonnegative check (opt_max_attempts >= 0),
  constraint opt_base_delay_is_nonnegative check (opt_base_delay >= 0),
  constraint opt_timeout_is_positive check (opt_timeout > 0)
);

comment on table pgflow.flows is
'Flow definitions and the options that their steps inherit.';
comment on column pgflow.flows.opt_max_attempts is
'How often a task is tried in all, the first attempt included.';
comment on column pgflow.flows.opt_base_delay is
'Seconds that the exponential back-off between attempts starts from.';
comment on column pgflow.flows.opt_timeout is
'Seconds that a claimed task has before its message becomes visible again.';
