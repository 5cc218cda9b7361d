SELECT o.order_id, c.country, to_jsonb(o) ->> 'country' IS DISTINCT FROM c.country AND to_jsonb(o) ? 'country' AS is_wrong FROM orders AS o JOIN customers AS c USING (customer_id) ORDER BY 1;
