-- Makes the stored flow that of a worker's shape: creates it, verifies it, or, in local mode only,
-- deletes it with its data and creates it again.
-- Locks: the flow's slug as spelled (advisory, key 1), so that compilations of a flow take turns;
-- then what _create_flow_from_shape and delete_flow_and_data lock.
create function pgflow.ensure_flow_compiled(flow_slug text, shape jsonb)
returns jsonb
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_status text;
  v_differences text[] := '{}';
begin
  perform pg_catalog.pg_advisory_xact_lock(
    1, pg_catalog.hashtext(ensure_flow_compiled.flow_slug)
  );

  if not exists (
    select from pgflow.flows as f where f.flow_slug = ensure_flow_compiled.flow_slug
  ) then
    perform pgflow._create_flow_from_shape(
      ensure_flow_compiled.flow_slug, ensure_flow_compiled.shape
    );
    v_status := 'compiled';
  else
    v_differences := pgflow._compare_flow_shapes(
      ensure_flow_compiled.shape, pgflow._get_flow_shape(ensure_flow_compiled.flow_slug)
    );
    if cardinality(v_differences) = 0 then
      v_status := 'verified';
    elsif pgflow.is_local() then
      perform pgflow.delete_flow_and_data(ensure_flow_compiled.flow_slug);
      perform pgflow._create_flow_from_shape(
        ensure_flow_compiled.flow_slug, ensure_flow_compiled.shape
      );
      v_status := 'recompiled';
    else
      v_status := 'mismatch';
    end if;
  end if;

  return jsonb_build_object('status', v_status, 'differences', to_jsonb(v_differences));
end;
$$;

comment on function pgflow.ensure_flow_compiled(text, jsonb) is
'Compares a shape with the stored flow. Returns status and differences: compiled (it was missing), '
'verified, recompiled (local mode: its data is gone), or mismatch (nothing was touched).';
