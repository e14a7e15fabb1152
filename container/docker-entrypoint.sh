#!/usr/bin/env bash
# Prepare a container as RabbitMQ's image does, import definitions and run scripts: see docs/container.md.
set -euo pipefail

note() {
  echo "docker-entrypoint: $*"
}

# `docker run IMAGE --log-level debug` and `docker run IMAGE -detached` are the server's options.
[[ ${1:-} != -* ]] || set -- rabbitmq-server "$@"

[ $# -gt 0 ] || set -- rabbitmq-server

program=${1##*/}
is_server=
[[ $program != rabbitmq-server && "$program ${2:-}" != "amqp-broker serve" ]] || is_server=true

# Root is not needed: become the user who owns the volume. With --user, the container has another user already.
if [ "$(id -u)" = 0 ] && [[ $program == rabbitmq* || $program == amqp-broker ]]; then
  if [ -n "$is_server" ]; then
    find /var/lib/rabbitmq \! -user rabbitmq -exec chown rabbitmq '{}' + ||
      note "the user rabbitmq could not become the owner of all files in /var/lib/rabbitmq"
  fi
  exec setpriv --reuid=rabbitmq --regid=rabbitmq --init-groups "${BASH_SOURCE[0]}" "$@"
fi

[ -n "$is_server" ] || exec "$@"

# Default files may be missing; files that the user names may not. rabbitmq.config is the format before rabbitmq.conf.
if [ "${RABBITMQ_CONFIG_FILE:-}" = /etc/rabbitmq/rabbitmq ] && [ ! -e /etc/rabbitmq/rabbitmq.conf ] &&
  [ ! -e /etc/rabbitmq/rabbitmq.config ]; then
  unset RABBITMQ_CONFIG_FILE
fi
if [ "${RABBITMQ_ADVANCED_CONFIG_FILE:-}" = /etc/rabbitmq/advanced ] && [ ! -e /etc/rabbitmq/advanced.config ]; then
  unset RABBITMQ_ADVANCED_CONFIG_FILE
fi

shopt -s nullglob
plugins=(/plugins/*.ez)
[ ${#plugins[@]} -eq 0 ] ||
  note "plugins for Erlang are not loaded: ${plugins[*]##*/}; the supported plugins of RabbitMQ are built in"

init=/docker-entrypoint-init.d
definitions=("$init"/*.json)
scripts=("$init"/*.sh)
if [ ${#definitions[@]} -gt 0 ]; then
  if [ -n "${AMQP_BROKER_DEFINITIONS:-}${RABBITMQ_DEFINITIONS_FILE:-}" ]; then
    note "the definitions of $init are not imported: the environment names others"
  else
    export AMQP_BROKER_DEFINITIONS=$init
  fi
fi

# Folder of the control socket; `docker exec` finds it by the same variable.
run=${AMQP_BROKER_RUNTIME_DIR:=/tmp/amqp-broker}
export AMQP_BROKER_RUNTIME_DIR
if ! (umask 077 && mkdir -p "$run") 2>/dev/null || [ ! -w "$run" ]; then
  note "cannot write to $run: with a read-only file system give the container --tmpfs /tmp"
  exit 73
fi
# These files remain from a broker that was killed in this container.
rm -f "$run"/*.sock "$run/initialising"

[ ${#scripts[@]} -gt 0 ] || exec "$@"

# Scripts run while the broker serves, so it is a child process, to which signals are passed on.
touch "$run/initialising"
"$@" &
broker=$!
trap 'kill -TERM "$broker" 2>/dev/null || true' TERM INT QUIT

run_scripts() {
  trap - TERM INT QUIT
  rabbitmqctl -q await_startup >/dev/null
  local script
  for script in "${scripts[@]}"; do
    note "running $script"
    if [ -x "$script" ]; then "$script"; else bash "$script"; fi || {
      note "$script failed with exit code $?: stopping"
      kill -TERM "$broker"
      exit 1
    }
  done
  rm -f "$run/initialising"
}
run_scripts &
job=$!

# wait also returns when this process gets a signal, while the broker still runs.
while :; do
  code=0
  wait "$broker" || code=$?
  kill -0 "$broker" 2>/dev/null || break
done
kill -TERM "$job" 2>/dev/null || true
failed=0
wait "$job" || failed=$?
[ "$failed" != 1 ] || code=1
exit "$code"
