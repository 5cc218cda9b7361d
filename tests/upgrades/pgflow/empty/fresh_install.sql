-- expect: accepted
-- A database that has no pgflow yet: the history must install it whole.

select 1;

-- then:
select count(*) = 0 from pgflow.flows;
select pgflow.is_valid_slug('fetch_page') and not pgflow.is_valid_slug('run');
select has_schema_privilege('pgflow', 'usage');
