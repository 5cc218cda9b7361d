-- Takes messages out of a flow's queue and keeps them in its archive.
-- Locks: the messages. The caller holds their tasks' rows.
create function pgflow._archive_messages(flow_slug text, message_ids bigint[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if cardinality(_archive_messages.message_ids) > 0 then
    perform pgmq.archive(_archive_messages.flow_slug, _archive_messages.message_ids);
  end if;
end;
$$;

comment on function pgflow._archive_messages(text, bigint[]) is
'Archives messages of a flow''s queue; null or an empty array is no call.';
