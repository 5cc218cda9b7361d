-- What Supabase's vault offers to a database, as far as pgflow sees it: secrets by name, in a view.
create schema vault;

create table vault.secrets (name text unique, secret text not null);

create view vault.decrypted_secrets as
select s.name, s.secret as decrypted_secret
from vault.secrets as s;
