CREATE TABLE t (id int, who text);
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY a ON t TO mx_reader, mx_app USING (true);
CREATE POLICY b ON t TO mx_app, mx_reader USING (true);
CREATE POLICY c ON t TO CURRENT_USER USING (who = '{"a": "b''c"}');
