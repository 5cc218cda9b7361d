CREATE TABLE customers (customer_id bigint PRIMARY KEY, country text NOT NULL);
CREATE TABLE orders (order_id bigint PRIMARY KEY, customer_id bigint NOT NULL REFERENCES customers);
