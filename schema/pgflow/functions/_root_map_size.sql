-- Says how many tasks the flow's root maps get; refuses an input that they could not be spread
-- over.
-- Locks: nothing.
create function pgflow._root_map_size(flow_slug text, input jsonb)
returns integer
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if jsonb_typeof(_root_map_size.input) = 'array' then
    return jsonb_array_length(_root_map_size.input);
  elsif not exists (
    select from pgflow.steps as st
    where st.flow_slug = _root_map_size.flow_slug
    and st.step_type = 'map'
    and st.deps_count = 0
  ) then
    return null;
  end if;

  raise exception using
    message = format(
      'Flow %s has root map steps but input is %s',
      _root_map_size.flow_slug,
      coalesce('not an array (got ' || jsonb_typeof(_root_map_size.input) || ')', 'NULL')
    ),
    hint = 'Pass a JSON array: each root map runs one task for each of its elements.';
end;
$$;

comment on function pgflow._root_map_size(text, jsonb) is
'The number of elements of a run''s input, null if it is no array; raises when the flow''s root maps need one.';
