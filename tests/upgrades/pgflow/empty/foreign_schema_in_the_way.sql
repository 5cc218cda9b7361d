-- expect: refused 42P06
-- message: schema "pgflow" already exists
-- Somebody else's schema of the same name: nothing may be changed in it.

create schema pgflow;
create table pgflow.notes (note_id bigint primary key, body text not null);
insert into pgflow.notes (note_id, body) values (1, 'mine');

-- then:
select body = 'mine' from pgflow.notes;
