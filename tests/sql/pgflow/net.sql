-- What pg_net offers to a database, as far as pgflow sees it: a queue of requests.
create schema net;

create table net.http_request_queue (
  id bigint generated always as identity primary key,
  url text not null,
  body jsonb,
  params jsonb,
  headers jsonb,
  timeout_milliseconds integer
);

create function net.http_post(
  url text,
  body jsonb default '{}',
  params jsonb default '{}',
  headers jsonb default '{"Content-Type": "application/json"}',
  timeout_milliseconds integer default 5000
)
returns bigint
language sql
volatile
set search_path = ''
as $$
  insert into net.http_request_queue (url, body, params, headers, timeout_milliseconds)
  values (
    http_post.url,
    http_post.body,
    http_post.params,
    http_post.headers,
    http_post.timeout_milliseconds
  )
  returning id;
$$;
