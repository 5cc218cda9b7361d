CREATE AGGREGATE rows(*) (SFUNC = int8inc, STYPE = int8, INITCOND = '0');
CREATE AGGREGATE biggest(int) (SFUNC = int4larger, STYPE = int4);
CREATE AGGREGATE hyp(VARIADIC "any" ORDER BY VARIADIC "any") (SFUNC = ordered_set_transition_multi, STYPE = internal, FINALFUNC = rank_final, FINALFUNC_EXTRA, HYPOTHETICAL);
CREATE AGGREGATE part(float8 ORDER BY float8) (SFUNC = ordered_set_transition, STYPE = internal, FINALFUNC = percentile_cont_float8_final);
CREATE FUNCTION f(a int, OUT b int) LANGUAGE sql AS $$ SELECT 1 $$;
