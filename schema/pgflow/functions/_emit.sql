-- Tells of one transition: its identity to listeners of pgflow_events, all of it to realtime.send.
-- Locks: nothing of pgflow's. A commit that notifies takes PostgreSQL's own lock on its queue.
-- A notification holds 8000 bytes at most, outputs may be larger: listeners read the rows.
-- Looking a function up fails for a role without usage of its schema, so only to_regnamespace,
-- which never fails, stands outside of the block; without realtime no subtransaction is begun.
create function pgflow._emit(payload jsonb, event text, topic text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_notify(
    'pgflow_events',
    jsonb_strip_nulls(jsonb_build_object(
      'event_type', _emit.payload -> 'event_type',
      'run_id', _emit.payload -> 'run_id',
      'step_slug', _emit.payload -> 'step_slug'
    ))::text
  );

  if to_regnamespace('realtime') is null then
    return;
  end if;
  begin
    if to_regprocedure('realtime.send(jsonb, text, text, boolean)') is not null then
      execute 'select realtime.send($1, $2, $3, false)'
      using _emit.payload, _emit.event, _emit.topic;
    end if;
  exception
    when assert_failure or others then
      raise warning using
        errcode = sqlstate,
        message = format('realtime.send() failed for event %s: %s', _emit.event, sqlerrm);
  end;
end;
$$;

comment on function pgflow._emit(jsonb, text, text) is
'Notifies channel pgflow_events and calls realtime.send if there is one; its error is a warning.';
