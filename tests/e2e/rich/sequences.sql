create sequence app.numbers_seq as int start 7 increment 3 maxvalue 1000 cycle;
grant usage on sequence app.numbers_seq to app_reader;
alter default privileges in schema app grant select on tables to app_reader;
