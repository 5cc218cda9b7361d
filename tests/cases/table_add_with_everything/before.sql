CREATE SCHEMA app;
COMMENT ON SCHEMA app IS 'application';
