-- Computes the seconds between a failed attempt and the next one.
-- Locks: nothing.
-- The claim has counted the attempt already: after the first failure the wait is twice the base.
-- Numeric throughout, as a power of two in floating point is not exact for long. There is no cap
-- but that of the type, 68 years: a failure that cannot be recorded would be worse.
create function pgflow.calculate_retry_delay(base_delay numeric, attempts_count integer)
returns integer
language sql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select least(
    floor(
      calculate_retry_delay.base_delay
      * power(2::numeric, least(calculate_retry_delay.attempts_count, 10000)::numeric)
    ),
    2147483647
  )::integer;
$$;

comment on function pgflow.calculate_retry_delay(numeric, integer) is
'Seconds until the next attempt: base_delay * 2 ^ attempts_count, rounded down.';
