create type app.state as enum ('new', 'paid', 'it''s gone');
create domain app.email as text check (value ~ '@') not null;
create domain app.percent as numeric(5, 2) default 0 constraint percent_range check (value between 0 and 100);
create type app.money_of as (amount numeric(12, 2), currency text);
comment on type app.state is 'States';
comment on domain app.percent is 'Of a hundred';
create type app.span as range (subtype = numeric);
