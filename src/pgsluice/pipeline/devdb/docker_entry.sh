# Runs a PostgreSQL server in a container, and ends the container when nobody has been connected for a while.
#
# Process 1 of the container: whatever way it ends, nothing of the server is left. Plain sh and no other program
# than sleep, for the smallest images.
#
# Arguments: idle seconds, `image` or `plain`, then with `image` the command that the image itself would run,
# with `plain` the server's settings for the programs that are found. With `plain`, PGDATA is where to put the
# cluster, POSTGRES_PASSWORD the superuser's password, and POSTGRES_INITDB_ARGS goes to initdb.

idle_s=$1
kind=$2
shift 2

START_S=300  # for a server that never listens
LINGER_S=60  # for whoever waits for the server, to read what it said
PORT=1538    # 5432 as /proc/net/tcp writes it
ESTABLISHED=01
LISTENING=0A

# Whether a socket of the server's port is in this state.
has_socket() {
  for table in /proc/net/tcp /proc/net/tcp6; do
    [ -r "$table" ] || continue
    while read -r _ address _ state _; do
      case "$address $state" in *":$PORT $1") return 0 ;; esac
    done <"$table"
  done
  return 1
}

end_when_idle() {
  waited=0
  until has_socket "$LISTENING" || [ "$waited" -ge "$START_S" ]; do
    sleep 1
    waited=$((waited + 1))
  done
  idle=0
  until [ "$idle" -ge "$idle_s" ]; do
    sleep 1
    idle=$((idle + 1))
    has_socket "$ESTABLISHED" && idle=0
  done
  kill -TERM $$
}

# Puts the newest server programs of the image first in PATH.
find_programs() {
  for folder in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/local/pgsql/bin /opt/*/postgresql/bin; do
    [ -x "$folder/initdb" ] && PATH=$folder:$PATH
  done
  command -v initdb >/dev/null && command -v postgres >/dev/null
}

run_plain() {
  folder=${PGDATA%/*}
  mkdir -p "$folder" || return
  (umask 077 && printf '%s\n' "$POSTGRES_PASSWORD" >"$folder/password") || return
  # shellcheck disable=SC2086 # several arguments
  initdb --pgdata="$PGDATA" --pwfile="$folder/password" $POSTGRES_INITDB_ARGS || return
  printf 'local all all trust\nhost all all all scram-sha-256\n' >"$PGDATA/pg_hba.conf" || return
  exec postgres -D "$PGDATA" -c unix_socket_directories="$folder" "$@"
}

trap 'exit 0' TERM INT
exec 2>&1 # one stream keeps its order in the log

if [ "$kind" = plain ] && ! find_programs; then
  echo "pgsluice: no server programs"
else
  if [ "$kind" = plain ]; then
    run_plain "$@" &
  else
    "$@" &
  fi
  server=$!
  end_when_idle &
  wait "$server"
  echo "pgsluice: the server ended with status $?"
fi
sleep "$LINGER_S" &
wait $!
