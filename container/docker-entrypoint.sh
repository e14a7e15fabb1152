#!/usr/bin/env bash
# What RabbitMQ's image does before its programs run, and what users of such images expect beyond: see docs/container.md.
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

# Root is not needed: become the user that the volume is for. With --user we are somebody already.
if [ "$(id -u)" = 0 ] && [[ $program == rabbitmq* || $program == amqp-broker ]]; then
  if [ -n "$is_server" ]; then
    find /var/lib/rabbitmq \! -user rabbitmq -exec chown rabbitmq '{}' + ||
      note "not all of /var/lib/rabbitmq could be given to the user rabbitmq"
  fi
  exec setpriv --reuid=rabbitmq --regid=rabbitmq --init-groups "${BASH_SOURCE[0]}" "$@"
fi

[ -n "$is_server" ] || exec "$@"

# Files that are not there are no news unless the user named them. rabbitmq.config is the format before rabbitmq.conf.
if [ "${RABBITMQ_CONFIG_FILE:-}" = /etc/rabbitmq/rabbitmq ] && [ ! -e /etc/rabbitmq/rabbitmq.conf ]; then
  unset RABBITMQ_CONFIG_FILE
  [ ! -e /etc/rabbitmq/rabbitmq.config ] || export RABBITMQ_CONFIG_FILE=/etc/rabbitmq/rabbitmq.config
fi
if [ "${RABBITMQ_ADVANCED_CONFIG_FILE:-}" = /etc/rabbitmq/advanced ] && [ ! -e /etc/rabbitmq/advanced.config ]; then
  unset RABBITMQ_ADVANCED_CONFIG_FILE
fi

shopt -s nullglob
plugins=(/plugins/*.ez)
[ ${#plugins[@]} -eq 0 ] ||
  note "plugins for Erlang are not loaded: ${plugins[*]##*/}; what RabbitMQ's own plugins do is built in where it is there"

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

# The folder of the control socket, which docker exec finds by the same variable.
run=${AMQP_BROKER_RUNTIME_DIR:=/tmp/amqp-broker}
export AMQP_BROKER_RUNTIME_DIR
if ! (umask 077 && mkdir -p "$run") 2>/dev/null || [ ! -w "$run" ]; then
  note "cannot write to $run: with a read-only file system give the container --tmpfs /tmp"
  exit 73
fi
# What is there is of a broker that was killed in this container.
rm -f "$run"/*.sock "$run/initialising"

[ ${#scripts[@]} -gt 0 ] || exec "$@"

# Scripts run when the broker serves, so it is a child of ours; signals are for it.
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

# wait returns early for a signal of ours, when the broker is still there.
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
