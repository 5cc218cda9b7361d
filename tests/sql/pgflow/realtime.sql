-- What Supabase's schema realtime offers to a database, as far as pgflow sees it.
create schema realtime;

create table realtime.messages (
  message_id bigint generated always as identity primary key,
  payload jsonb not null,
  event text not null,
  topic text not null,
  private boolean not null
);

create function realtime.send(payload jsonb, event text, topic text, private boolean default true)
returns void
language sql
volatile
set search_path = ''
as $$
  insert into realtime.messages (payload, event, topic, private)
  values (send.payload, send.event, send.topic, send.private);
$$;
