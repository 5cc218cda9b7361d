-- Holds a flow until the transaction ends, shared with others or not.
-- Locks: the flow's row, for no key update if exclusively, else for share.
-- Whoever recompiled the flow while this waited left another row of its name: that one is to be
-- held.
create function pgflow._hold_flow(flow_slug text, exclusively boolean)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  for v_turn in 1 .. 100 loop
    if _hold_flow.exclusively then
      perform from pgflow.flows as f where f.flow_slug = _hold_flow.flow_slug for no key update;
    else
      perform from pgflow.flows as f where f.flow_slug = _hold_flow.flow_slug for share;
    end if;
    if found then
      return true;
    elsif not exists (select from pgflow.flows as f where f.flow_slug = _hold_flow.flow_slug) then
      return false;
    end if;
  end loop;

  raise exception using
    errcode = 'insufficient_privilege',
    message = format('flow %s is there, but this role cannot lock it', _hold_flow.flow_slug),
    hint = 'A row policy lets the role read the flow; it needs one for updates as well.';
end;
$$;

comment on function pgflow._hold_flow(text, boolean) is
'Locks the row of a flow; false if there is none.';
