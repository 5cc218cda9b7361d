-- Says whether this database is a developer's own, where a changed flow may be made anew.
-- Locks: nothing.
-- The secret is the one that Supabase's command line gives to every local project: it is public.
create function pgflow.is_local()
returns boolean
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select
    coalesce(
      current_setting('app.settings.jwt_secret', true)
      = 'super-secret-jwt-token-with-at-least-32-characters-long',
      false
    )
    or coalesce(current_setting('pgflow.environment', true) = 'local', false);
$$;

comment on function pgflow.is_local() is
'True if pgflow.environment is local, or the JWT secret is that of Supabase''s local stack.';
