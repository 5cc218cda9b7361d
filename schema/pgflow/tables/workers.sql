create table pgflow.workers (
  worker_id uuid not null,
  queue_name text not null,
  function_name text not null,
  started_at timestamptz not null default now(),
  deprecated_at timestamptz,
  stopped_at timestamptz,
  last_heartbeat_at timestamptz not null default now(),
  constraint workers_pkey primary key (worker_id)
);

create index idx_workers_queue_name on pgflow.workers (queue_name);
create index idx_workers_heartbeat on pgflow.workers (last_heartbeat_at);

comment on table pgflow.workers is
'Worker processes, live and past, each with its heartbeat.';
comment on column pgflow.workers.queue_name is
'The queue that the worker polls.';
comment on column pgflow.workers.function_name is
'The deployed function or process that the worker runs in.';
comment on column pgflow.workers.deprecated_at is
'When the worker was told to finish and take no new tasks; null while it may.';
comment on column pgflow.workers.stopped_at is
'When the worker ended in good order; null while it runs, and for one that died.';
