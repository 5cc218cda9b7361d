-- Creates a flow and its queue, or returns the flow that already bears this slug, as it is.
-- Locks: the flow's row (for no key update), then the queue's name: the key under which PGMQ makes
-- the lower-case spelling, because all spellings share one pair of tables.
create function pgflow.create_flow(
  flow_slug text,
  max_attempts integer default null,
  base_delay integer default null,
  timeout integer default null
)
returns pgflow.flows
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue_name text;
begin
  -- A deletion may take the row away between the two statements.
  loop
    insert into pgflow.flows (flow_slug, opt_max_attempts, opt_base_delay, opt_timeout)
    values (
      create_flow.flow_slug,
      coalesce(create_flow.max_attempts, 3),
      coalesce(create_flow.base_delay, 5),
      coalesce(create_flow.timeout, 60)
    )
    on conflict on constraint flows_pkey do nothing;

    exit when pgflow._hold_flow(create_flow.flow_slug, exclusively => true);
  end loop;

  perform pg_catalog.pg_advisory_xact_lock(
    pg_catalog.hashtext('pgmq.queue_' || lower(create_flow.flow_slug))
  );
  -- A queue that has an entry, but has lost its tables, gets them again.
  select m.queue_name into v_queue_name
  from pgmq.meta as m
  where lower(m.queue_name) = lower(create_flow.flow_slug)
  order by m.queue_name = create_flow.flow_slug desc, m.queue_name
  limit 1;
  if not found or to_regclass(
    format('pgmq.%I', pgmq.format_table_name(create_flow.flow_slug, 'q'))
  ) is null then
    perform pgmq.create(coalesce(v_queue_name, create_flow.flow_slug));
  end if;

  return (select f from pgflow.flows as f where f.flow_slug = create_flow.flow_slug);
end;
$$;

comment on function pgflow.create_flow(text, integer, integer, integer) is
'Creates a flow (3 attempts, 5 s base delay, 60 s timeout unless given) and its queue; an existing '
'flow is returned unchanged, whatever the options.';
