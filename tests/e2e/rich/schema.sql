create schema app;
comment on schema app is 'The app''s own';
grant usage on schema app to app_reader;
