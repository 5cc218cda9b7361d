create table app.users (
  user_id bigint generated always as identity (start with 100 increment by 5) primary key,
  name text not null,
  address app.email,
  name_lower text generated always as (lower(name)) stored,
  discount app.percent,
  tags text[] default '{}' not null,
  made timestamptz default now() not null,
  owner name default current_user not null,
  constraint users_name_not_empty check (name <> '')
);
comment on table app.users is 'People';
comment on column app.users.name is 'As they write it';
create unique index users_name_idx on app.users (lower(name)) include (made) where name <> 'x';
create index users_tags_idx on app.users using gin (tags);
alter table app.users enable row level security;
alter table app.users force row level security;
grant select (user_id, name), update (name) on app.users to app_reader;
grant select on app.users to app_writer with grant option;
create policy users_own on app.users as restrictive for select to app_reader using (owner = current_user);
create policy users_all on app.users for all to app_writer using (true) with check (app.is_ok(name));
