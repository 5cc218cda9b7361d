-- Returns the structure of a stored flow, as a worker sends its own; an unknown flow has no steps.
-- Locks: nothing.
create function pgflow._get_flow_shape(p_flow_slug text)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'steps',
    coalesce(
      jsonb_agg(
        jsonb_build_object(
          'slug', s.step_slug,
          'stepType', s.step_type,
          'dependencies', coalesce(
            (
              select jsonb_agg(d.dep_slug order by d.dep_slug collate "C")
              from pgflow.deps as d
              where d.flow_slug = s.flow_slug and d.step_slug = s.step_slug
            ),
            '[]'
          ),
          'whenUnmet', s.when_unmet,
          'whenExhausted', s.when_exhausted,
          'requiredInputPattern', case
            when s.required_input_pattern is null then '{"defined": false}'
            else jsonb_build_object('defined', true, 'value', s.required_input_pattern)
          end,
          'forbiddenInputPattern', case
            when s.forbidden_input_pattern is null then '{"defined": false}'
            else jsonb_build_object('defined', true, 'value', s.forbidden_input_pattern)
          end
        )
        order by s.step_index
      ),
      '[]'
    )
  )
  from pgflow.steps as s
  where s.flow_slug = p_flow_slug;
$$;

comment on function pgflow._get_flow_shape(text) is
'The shape of a stored flow: its steps in order, each with type, sorted parents, modes and '
'patterns; no options.';
