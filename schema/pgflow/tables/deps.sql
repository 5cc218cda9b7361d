-- A parent must exist before its edge, and no step is its own parent: the order of definition is a
-- topological order, and no cycle can be written.
create table pgflow.deps (
  flow_slug text not null,
  dep_slug text not null,
  step_slug text not null,
  created_at timestamptz not null default now(),
  constraint deps_pkey primary key (flow_slug, dep_slug, step_slug),
  constraint deps_flow_slug_fkey foreign key (flow_slug) references pgflow.flows (flow_slug),
  constraint deps_flow_slug_dep_slug_fkey foreign key (flow_slug, dep_slug)
  references pgflow.steps (flow_slug, step_slug),
  constraint deps_flow_slug_step_slug_fkey foreign key (flow_slug, step_slug)
  references pgflow.steps (flow_slug, step_slug),
  constraint deps_check check (dep_slug <> step_slug)
);

create index idx_deps_by_flow_step on pgflow.deps (flow_slug, step_slug);
create index idx_deps_by_flow_dep on pgflow.deps (flow_slug, dep_slug);

comment on table pgflow.deps is
'Edges of a flow''s graph: one row for each step and each of its parents.';
comment on column pgflow.deps.dep_slug is
'The parent: the step that is depended on.';
comment on column pgflow.deps.step_slug is
'The child: the step that waits.';
