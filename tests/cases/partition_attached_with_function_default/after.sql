create schema app;
create type app.e as enum ('a', 'b');
create function app.f(app.e) returns integer language sql immutable return case when $1 = 'a' then 1 else 2 end;
create table app.p (id integer not null, e app.e not null, n integer default app.f('a')) partition by list (e);
create table app.pa (id integer not null, e app.e not null, n integer default app.f('a'));
alter table app.p attach partition app.pa for values in ('a');
create table app.t (id integer, pe app.e);
alter table app.p add unique (e);
