create schema pgflow;

comment on schema pgflow is
'DAG flows over PGMQ queues: definitions, runs, step states and tasks. Granted to nobody.';

-- Nothing is granted to anybody, in words as well: roles get what they need from their operator.
revoke all on schema pgflow from public;
