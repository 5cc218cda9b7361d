#!/usr/bin/env bash
# The way of the official images: a temporary server without TCP runs the scripts, then the real one follows.
set -Eeuo pipefail
if [ "${1:0:1}" = '-' ]; then set -- postgres "$@"; fi
if [ "$1" = postgres ] && [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA"; chmod 00700 "$PGDATA"; chown -R postgres "$PGDATA"
  exec setpriv --reuid=postgres --regid=postgres --init-groups "$BASH_SOURCE" "$@"
fi
if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
  : "${POSTGRES_PASSWORD:?database is uninitialized and superuser password is not specified}"
  eval 'initdb --username="$POSTGRES_USER" --pwfile=<(printf "%s\n" "$POSTGRES_PASSWORD") '"$POSTGRES_INITDB_ARGS"
  printf '\nhost all all all scram-sha-256\n' >> "$PGDATA/pg_hba.conf"
  args=("$@"); shift
  PGUSER=$POSTGRES_USER pg_ctl -D "$PGDATA" -o "$(printf '%q ' "$@" -c listen_addresses='' -p 5432)" -w start
  for f in /docker-entrypoint-initdb.d/*; do
    case "$f" in *.sql) psql -v ON_ERROR_STOP=1 --no-psqlrc -U "$POSTGRES_USER" -d "$POSTGRES_DB" -f "$f" ;; esac
  done
  pg_ctl -D "$PGDATA" -m fast -w stop
  set -- "${args[@]}"
fi
exec "$@"
