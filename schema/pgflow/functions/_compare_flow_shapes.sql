-- Lists how two shapes differ in structure, step by step; options do not count.
-- Locks: nothing.
-- A key that is absent or null stands for its default on both sides, as it does when a flow is
-- made of the shape.
create function pgflow._compare_flow_shapes(p_local jsonb, p_db jsonb)
returns text[]
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  with
  aspects as (
    select h.side, e.position - 1 as step_index, a.place, a.name, a.value
    from (values (1, p_local), (2, p_db)) as h (side, shape)
    cross join lateral
    jsonb_array_elements(h.shape -> 'steps') with ordinality as e (step, position)
    cross join lateral (
      values
      (1, 'slug differs', coalesce(e.step -> 'slug', 'null')),
      (2, 'type differs', to_jsonb(coalesce(e.step ->> 'stepType', 'single'))),
      (
        3,
        'dependencies differ',
        to_jsonb(
          array(
            select distinct d.slug collate "C" as slug
            from jsonb_array_elements_text(nullif(e.step -> 'dependencies', 'null')) as d (slug)
            order by slug
          )
        )
      ),
      (4, 'whenUnmet differs', to_jsonb(coalesce(e.step ->> 'whenUnmet', 'skip'))),
      (5, 'whenExhausted differs', to_jsonb(coalesce(e.step ->> 'whenExhausted', 'fail'))),
      (
        6,
        'requiredInputPattern differs',
        coalesce(nullif(e.step -> 'requiredInputPattern', 'null'), '{"defined": false}')
      ),
      (
        7,
        'forbiddenInputPattern differs',
        coalesce(nullif(e.step -> 'forbiddenInputPattern', 'null'), '{"defined": false}')
      )
    ) as a (place, name, value)
  ),
  shown as (
    select
      a.side,
      a.step_index,
      a.place,
      a.name,
      a.value,
      case jsonb_typeof(a.value)
        when 'array'
          then format(
            '[%s]',
            array_to_string(
              array(select d.slug from jsonb_array_elements_text(a.value) as d (slug)), ', '
            )
          )
        else format('''%s''', a.value #>> '{}')
      end as text
    from aspects as a
  ),
  pairs as (
    select
      s.step_index,
      s.place,
      s.name,
      count(distinct s.value) as value_count,
      max(s.text) filter (where s.side = 1) as first,
      max(s.text) filter (where s.side = 2) as second
    from shown as s
    group by s.step_index, s.place, s.name
  ),
  lengths as (
    select count(p.first) as first, count(p.second) as second
    from pairs as p
    where p.place = 1
  ),
  differences as (
    select
      -1 as step_index,
      0 as place,
      format('Step count differs: %s vs %s', l.first, l.second) as text
    from lengths as l
    where l.first <> l.second
    union all
    select
      p.step_index,
      p.place,
      format(
        'Step at index %s: %s',
        p.step_index,
        case
          when p.first is null then format('missing in first shape (second has %s)', p.second)
          when p.second is null then format('missing in second shape (first has %s)', p.first)
          else format('%s %s vs %s', p.name, p.first, p.second)
        end
      )
    from pairs as p
    where
      p.value_count > 1
      or p.place = 1 and num_nonnulls(p.first, p.second) = 1
  )
  select coalesce(array_agg(d.text order by d.step_index, d.place), '{}')
  from differences as d;
$$;

comment on function pgflow._compare_flow_shapes(jsonb, jsonb) is
'Differences between two shapes in words, none when they are equal: number of steps, then at each '
'position slug, type, parents as a set, modes and patterns.';
