SELECT id, (a).x::int, (arr[1]).x::int, (arr[1]).y::int FROM t;
