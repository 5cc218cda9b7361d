-- Creates a flow with the steps of a shape, in their order, and with the shape's options.
-- Locks: what create_flow and add_step lock, the flow's row and its queue's name.
create function pgflow._create_flow_from_shape(p_flow_slug text, p_shape jsonb)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_step jsonb;
begin
  perform pgflow.create_flow(
    flow_slug => p_flow_slug,
    max_attempts => (p_shape -> 'options' ->> 'maxAttempts')::integer,
    base_delay => (p_shape -> 'options' ->> 'baseDelay')::integer,
    timeout => (p_shape -> 'options' ->> 'timeout')::integer
  );

  for v_step in
    select e.step
    from jsonb_array_elements(p_shape -> 'steps') with ordinality as e (step, position)
    order by e.position
  loop
    perform pgflow.add_step(
      flow_slug => p_flow_slug,
      step_slug => v_step ->> 'slug',
      deps_slugs => array(
        select d.slug
        from jsonb_array_elements_text(nullif(v_step -> 'dependencies', 'null')) as d (slug)
      ),
      max_attempts => (v_step -> 'options' ->> 'maxAttempts')::integer,
      base_delay => (v_step -> 'options' ->> 'baseDelay')::integer,
      timeout => (v_step -> 'options' ->> 'timeout')::integer,
      start_delay => (v_step -> 'options' ->> 'startDelay')::integer,
      step_type => v_step ->> 'stepType',
      required_input_pattern => case
        when (v_step -> 'requiredInputPattern' ->> 'defined')::boolean
          then v_step -> 'requiredInputPattern' -> 'value'
      end,
      forbidden_input_pattern => case
        when (v_step -> 'forbiddenInputPattern' ->> 'defined')::boolean
          then v_step -> 'forbiddenInputPattern' -> 'value'
      end,
      when_unmet => coalesce(v_step ->> 'whenUnmet', 'skip'),
      when_exhausted => coalesce(v_step ->> 'whenExhausted', 'fail')
    );
  end loop;
end;
$$;

comment on function pgflow._create_flow_from_shape(text, jsonb) is
'Creates a flow and its steps from the shape that a worker sends, options included.';
