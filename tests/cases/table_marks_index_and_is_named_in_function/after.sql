create table t (id int primary key, a int not null, b int);
create function f() returns bigint language sql immutable as $$ select count(*) from t $$;
create function g(int) returns int language sql immutable return $1;
create unique index t_a on t (a);
create index t_g on t (g(b));
create table u (id int default g(1), x bigint default f());
alter table t cluster on t_a;
alter table t replica identity using index t_a;
