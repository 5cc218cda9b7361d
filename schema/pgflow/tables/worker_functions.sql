create table pgflow.worker_functions (
  function_name text not null,
  enabled boolean not null default true,
  debounce interval not null default interval '6 seconds',
  last_invoked_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  start_mode text not null default 'http',
  constraint worker_functions_pkey primary key (function_name),
  constraint worker_functions_debounce_check check (debounce >= interval '1 second'),
  constraint worker_functions_start_mode_check check (start_mode in ('http', 'process'))
);

comment on table pgflow.worker_functions is
'Functions that host workers, and how they are kept running.';
comment on column pgflow.worker_functions.enabled is
'False pauses the function: it is not started again until an operator sets this to true.';
comment on column pgflow.worker_functions.debounce is
'Least time between two starts, and how old a heartbeat may be before its worker counts as dead.';
comment on column pgflow.worker_functions.last_invoked_at is
'When the function was last started by a ping; null if never.';
comment on column pgflow.worker_functions.start_mode is
'http: started by a ping. process: looks after its own start and is never pinged.';
