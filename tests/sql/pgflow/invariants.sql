-- Every broken invariant of pgflow's rows and messages, one line of text each; none when all hold.
-- Placeholders: only (the run to look at, null for all), messages (queue, msg_id, message,
-- is_live of every flow's queue and archive), archives_kept (false where archives were trimmed).
with run as (
  select r.*
  from pgflow.runs as r
  where {only} is null or r.run_id = {only}
),
flow_queue as (
  select f.flow_slug, lower(f.flow_slug) as queue from pgflow.flows as f
),
message as materialized (
  {messages}
),
state as materialized (
  select
    s.*, d.step_type, d.step_index, d.deps_count, d.when_unmet, d.when_exhausted,
    d.required_input_pattern as required, d.forbidden_input_pattern as forbidden,
    format('step %s of run %s', s.step_slug, s.run_id) as who,
    r.status as run_status, r.input as run_input
  from run as r
  join pgflow.step_states as s on s.run_id = r.run_id
  join pgflow.steps as d on d.flow_slug = s.flow_slug and d.step_slug = s.step_slug
),
task as materialized (
  select
    t.*, coalesce(d.opt_max_attempts, f.opt_max_attempts) as max_attempts,
    format('task %s of step %s of run %s', t.task_index, t.step_slug, t.run_id) as who,
    r.status as run_status, s.status as step_status,
    q.queue, r.flow_slug as run_flow_slug
  from run as r
  join pgflow.step_tasks as t on t.run_id = r.run_id
  join pgflow.step_states as s on s.run_id = t.run_id and s.step_slug = t.step_slug
  join pgflow.steps as d on d.flow_slug = t.flow_slug and d.step_slug = t.step_slug
  join pgflow.flows as f on f.flow_slug = t.flow_slug
  join flow_queue as q on q.flow_slug = t.flow_slug
),
parent as materialized (
  select
    c.run_id, c.step_slug, p.step_slug as parent_slug, p.status, p.output,
    (p.skip_reason = 'dependency_skipped')
    or (p.skip_reason = 'condition_unmet' and p.when_unmet = 'skip-cascade')
    or (p.skip_reason = 'handler_failed' and p.when_exhausted = 'skip-cascade') as cascades
  from state as c
  join pgflow.deps as e on e.flow_slug = c.flow_slug and e.step_slug = c.step_slug
  join state as p on p.run_id = c.run_id and p.step_slug = e.dep_slug
),
parents as materialized (
  select
    c.run_id, c.step_slug,
    count(p.parent_slug) as known,
    count(p.parent_slug) filter (where p.status not in ('completed', 'skipped')) as unfinished,
    coalesce(bool_or(p.cascades), false) as any_cascades,
    case
      when c.deps_count = 0 then c.run_input
      else coalesce(
        jsonb_object_agg(p.parent_slug, p.output) filter (where p.status = 'completed'),
        jsonb_build_object()
      )
    end as subject,
    -- A map has at most one parent; these two are that one's.
    max(p.status) as status,
    (array_agg(p.output))[1] as output
  from state as c
  left join parent as p on p.run_id = c.run_id and p.step_slug = c.step_slug
  group by c.run_id, c.step_slug, c.deps_count, c.run_input
),
totals as materialized (
  select
    s.run_id, s.step_slug,
    count(t.task_index) as known,
    count(t.task_index) filter (where t.status = 'completed') as completed,
    count(t.task_index) filter (where t.status = 'failed') as failed,
    coalesce(max(t.task_index), -1) as last_index,
    coalesce(
      jsonb_agg(t.output order by t.task_index) filter (where t.task_index is not null),
      '[]'
    ) as outputs,
    (array_agg(t.output))[1] as output
  from state as s
  left join task as t on t.run_id = s.run_id and t.step_slug = s.step_slug
  group by s.run_id, s.step_slug
),
run_totals as (
  select
    r.run_id,
    count(s.step_slug) filter (where s.status not in ('completed', 'skipped')) as unfinished,
    count(s.step_slug) filter (where s.status = 'failed') as failed,
    jsonb_object_agg(s.step_slug, s.output) filter (
      where s.status = 'completed' and not exists (
        select from pgflow.deps as e where e.flow_slug = s.flow_slug and e.dep_slug = s.step_slug
      )
    ) as leaves
  from run as r
  left join state as s on s.run_id = r.run_id
  group by r.run_id
),
finding as (
  -- runs
  select format(
    'run %s: remaining_steps is %s, but %s steps have not ended',
    r.run_id, r.remaining_steps, n.unfinished
  )
  from run as r join run_totals as n on n.run_id = r.run_id
  where r.remaining_steps <> n.unfinished
  union all
  select format('run %s is %s with %s steps not ended', r.run_id, r.status, n.unfinished)
  from run as r join run_totals as n on n.run_id = r.run_id
  where (r.status = 'completed') <> (n.unfinished = 0)
  union all
  select format('run %s is %s with %s failed steps', r.run_id, r.status, n.failed)
  from run as r join run_totals as n on n.run_id = r.run_id
  where n.failed <> case r.status when 'failed' then 1 else 0 end
  union all
  select format(
    'run %s is %s with output %s, its leaves make %s',
    r.run_id, r.status, r.output, n.leaves
  )
  from run as r join run_totals as n on n.run_id = r.run_id
  where r.output is distinct from case r.status when 'completed' then n.leaves end
  union all
  select format(
    'run %s is %s, completed at %s, failed at %s',
    r.run_id, r.status, r.completed_at, r.failed_at
  )
  from run as r
  where (r.status = 'completed') <> (r.completed_at is not null)
    or (r.status = 'failed') <> (r.failed_at is not null)
  -- steps: counters
  union all
  select format('%s: deps_count is %s, edges are %s', s.who, s.deps_count, p.known)
  from state as s join parents as p on p.run_id = s.run_id and p.step_slug = s.step_slug
  where s.deps_count <> p.known
  union all
  -- A cascade counts nothing down in what it skips.
  select format(
    '%s (%s): remaining_deps is %s, %s parents have not ended',
    s.who, s.status, s.remaining_deps, p.unfinished
  )
  from state as s join parents as p on p.run_id = s.run_id and p.step_slug = s.step_slug
  where case
    when s.skip_reason = 'dependency_skipped'
    then s.remaining_deps not between p.unfinished and s.deps_count
    else s.remaining_deps <> p.unfinished
  end
  union all
  select format(
    '%s (%s): remaining_tasks is %s, %s of %s tasks are completed',
    s.who, s.status, s.remaining_tasks, n.completed, n.known
  )
  from state as s join totals as n on n.run_id = s.run_id and n.step_slug = s.step_slug
  where s.remaining_tasks is distinct from case
    when s.started_at is null or s.status = 'skipped' then null
    else n.known - n.completed
  end
  union all
  select format(
    '%s (%s): initial_tasks is %s, tasks are %s with highest index %s',
    s.who, s.status, s.initial_tasks, n.known, n.last_index
  )
  from state as s join totals as n on n.run_id = s.run_id and n.step_slug = s.step_slug
  where n.known <> case when s.started_at is null then 0 else s.initial_tasks end
    or n.last_index <> n.known - 1
  union all
  select format(
    '%s (%s): initial_tasks is %s, which its input does not give',
    s.who, s.status, s.initial_tasks
  )
  from state as s join parents as p on p.run_id = s.run_id and p.step_slug = s.step_slug
  where s.skip_reason is distinct from 'dependency_skipped'
    and s.initial_tasks is distinct from case
      when s.step_type = 'single' then 1
      when s.deps_count = 0 then jsonb_array_length(s.run_input)
      when p.status = 'skipped' then 0
      when jsonb_typeof(p.output) = 'array' then jsonb_array_length(p.output)
    end
  -- steps: states
  union all
  select format('%s is created, though run is started and no parent is missing', s.who)
  from state as s
  where s.status = 'created' and s.run_status = 'started' and s.remaining_deps = 0
  union all
  select format('%s is %s before its parents ended', s.who, s.status)
  from state as s join parents as p on p.run_id = s.run_id and p.step_slug = s.step_slug
  where p.unfinished > 0
    and s.status <> 'created'
    and s.skip_reason is distinct from 'dependency_skipped'
  union all
  select format(
    '%s (%s): times are %s, %s, %s, %s',
    s.who, s.status, s.started_at, s.completed_at, s.failed_at, s.skipped_at
  )
  from state as s
  where (s.status = 'completed') <> (s.completed_at is not null)
    or (s.status = 'failed') <> (s.failed_at is not null)
    or (s.status = 'skipped') <> (s.skipped_at is not null)
    or (s.status in ('started', 'completed') and s.started_at is null)
    or (s.status = 'created' and s.started_at is not null)
  union all
  select format(
    '%s (%s): output is %s, its tasks make %s',
    s.who, s.step_type, s.output, case s.step_type when 'map' then n.outputs else n.output end
  )
  from state as s join totals as n on n.run_id = s.run_id and n.step_slug = s.step_slug
  where s.status = 'completed'
    and s.output is distinct from case s.step_type when 'map' then n.outputs else n.output end
  union all
  select format('%s is skipped (%s) against its definition or parents', s.who, s.skip_reason)
  from state as s join parents as p on p.run_id = s.run_id and p.step_slug = s.step_slug
  where (s.skip_reason = 'condition_unmet' and s.when_unmet = 'fail')
    or (s.skip_reason = 'handler_failed' and s.when_exhausted = 'fail')
    or ((s.skip_reason = 'dependency_skipped') <> p.any_cascades and s.status = 'skipped')
  union all
  select format('%s is %s below a parent whose skip cascades', s.who, s.status)
  from state as s join parents as p on p.run_id = s.run_id and p.step_slug = s.step_slug
  where p.any_cascades and s.status <> 'skipped'
  union all
  select format(
    '%s is %s, %s, though its condition is %s',
    s.who, s.status, s.skip_reason, case when c.is_met then 'met' else 'unmet' end
  )
  from state as s
  join parents as p on p.run_id = s.run_id and p.step_slug = s.step_slug
  cross join lateral (
    select
      (s.required is null or p.subject @> s.required)
      and (s.forbidden is null or not p.subject @> s.forbidden) as is_met
  ) as c
  where p.unfinished = 0
    and s.status <> 'created'
    and s.skip_reason is distinct from 'dependency_skipped'
    and c.is_met = (
      s.skip_reason is not distinct from 'condition_unmet'
      or (s.status = 'failed' and s.started_at is null)
    )
  union all
  select format('%s is %s (%s) with %s failed tasks', s.who, s.status, s.skip_reason, n.failed)
  from state as s join totals as n on n.run_id = s.run_id and n.step_slug = s.step_slug
  where n.failed <> case
    when s.skip_reason = 'handler_failed' then 1
    when s.status = 'failed' and s.started_at is not null then 1
    else 0
  end
  -- tasks
  union all
  select format('%s is %s, its step %s, its run %s', t.who, t.status, t.step_status, t.run_status)
  from task as t
  where case t.status
    when 'queued' then t.step_status <> 'started' or t.run_status <> 'started'
    when 'started' then t.step_status <> 'started' or t.run_status <> 'started'
    when 'completed' then t.step_status = 'created'
    when 'skipped' then t.step_status <> 'skipped'
    when 'cancelled' then t.run_status <> 'failed'
    else t.step_status not in ('failed', 'skipped')
  end
  union all
  select format('%s is of flow %s, its run of flow %s', t.who, t.flow_slug, t.run_flow_slug)
  from task as t
  where t.flow_slug <> t.run_flow_slug
  union all
  select format(
    '%s (%s): times are %s, %s, %s',
    t.who, t.status, t.started_at, t.completed_at, t.failed_at
  )
  from task as t
  where (t.status = 'completed') <> (t.completed_at is not null)
    or (t.status = 'failed') <> (t.failed_at is not null)
    or (t.status in ('started', 'completed', 'failed') and t.started_at is null)
    or (t.status = 'queued' and t.started_at is not null)
  union all
  select format(
    '%s (%s): %s attempts of %s with %s recoveries',
    t.who, t.status, t.attempts_count, t.max_attempts, t.requeued_count
  )
  from task as t
  where t.attempts_count > greatest(t.max_attempts, 1) + t.requeued_count
    or (t.status in ('started', 'completed', 'failed') and t.attempts_count = 0)
    or t.requeued_count > 3
  -- messages
  union all
  select format('flow %s has no queue or no archive', q.flow_slug)
  from flow_queue as q
  where to_regclass(format('pgmq.%I', 'q_' || q.queue)) is null
    or to_regclass(format('pgmq.%I', 'a_' || q.queue)) is null
  union all
  select format('%s (%s, stalled for good: %s): message %s is %s times live, %s times archived',
    t.who, t.status, t.permanently_stalled_at is not null, t.message_id, c.live, c.archived)
  from task as t
  cross join lateral (
    select
      count(*) filter (where m.is_live) as live,
      count(*) filter (where not m.is_live) as archived
    from message as m
    where m.queue = t.queue and m.msg_id = t.message_id
  ) as c
  where t.message_id is not null
    and case
      when t.status in ('queued', 'started') and t.permanently_stalled_at is null
      then c.live <> 1 or c.archived <> 0
      else c.live <> 0 or c.archived > 1 or (c.archived = 0 and {archives_kept})
    end
  union all
  select format('message %s in queue %s announces no open task: %s', m.msg_id, m.queue, m.message)
  from message as m
  where m.is_live
    and {only} is null
    and not exists (
      select
      from task as t
      where t.queue = m.queue
        and t.message_id = m.msg_id
        and t.status in ('queued', 'started')
        and m.message = jsonb_build_object(
          'flow_slug', t.flow_slug,
          'run_id', t.run_id,
          'step_slug', t.step_slug,
          'task_index', t.task_index
        )
    )
  union all
  select format('message %s of queue %s announces %s tasks', t.message_id, t.queue, count(*))
  from task as t
  where t.message_id is not null
  group by t.queue, t.message_id
  having count(*) > 1
)
select f.format as finding from finding as f order by 1
