CREATE TABLE t (id int, who text);
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY a ON t TO mx_app, mx_reader USING (true);
CREATE POLICY b ON t TO mx_app, mx_reader USING (id > 0);
CREATE POLICY c ON t TO CURRENT_USER, mx_app USING (who = '{"a": "b''c"}');
