-- Gives each of a queue's messages its own time of becoming visible, in one statement.
-- Locks: the rows of those messages. Queue rows come last in the order: lock tasks before.
-- Columns are named, as PGMQ's versions differ in what a message has beside them.
create function pgflow.set_vt_batch(queue_name text, msg_ids bigint[], vt_offsets integer[])
returns table (
  msg_id bigint,
  read_ct integer,
  enqueued_at timestamptz,
  vt timestamptz,
  message jsonb,
  headers jsonb
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce(cardinality(set_vt_batch.msg_ids), 0) = 0
    or coalesce(cardinality(set_vt_batch.vt_offsets), 0) = 0
  then
    return;
  end if;
  if cardinality(set_vt_batch.msg_ids) <> cardinality(set_vt_batch.vt_offsets) then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format(
        'msg_ids length (%s) must equal vt_offsets length (%s)',
        cardinality(set_vt_batch.msg_ids),
        cardinality(set_vt_batch.vt_offsets)
      );
  end if;

  return query execute format(
    $sql$
      update pgmq.%I as q
      set vt = clock_timestamp() + make_interval(secs => wanted.vt_offset)
      from unnest($1, $2) as wanted (msg_id, vt_offset)
      where q.msg_id = wanted.msg_id and q.msg_id = any($1)
      returning q.msg_id, q.read_ct, q.enqueued_at, q.vt, q.message, q.headers
    $sql$,
    pgmq.format_table_name(set_vt_batch.queue_name, 'q')
  )
  using set_vt_batch.msg_ids, set_vt_batch.vt_offsets;
end;
$$;

comment on function pgflow.set_vt_batch(text, bigint[], integer[]) is
'Makes each message visible its own number of seconds from now; returns the messages it found.';
