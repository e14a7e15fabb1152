#!/usr/bin/env bash
# The image's health check: does each AMQP port of the broker take connections? It may ask often, since it costs two
# milliseconds. The port opens when everything is loaded; what remains are the scripts of /docker-entrypoint-init.d.
run=${AMQP_BROKER_RUNTIME_DIR:-/tmp/amqp-broker}
if [ -e "$run/initialising" ]; then
  echo "the scripts of /docker-entrypoint-init.d are running"
  exit 1
fi

# The control socket is named after the port, wherever that was set.
shopt -s nullglob
ports=("$run"/*.sock)
ports=("${ports[@]##*/}")
ports=("${ports[@]%.sock}")
[ ${#ports[@]} -gt 0 ] || ports=("${AMQP_BROKER_PORT:-${RABBITMQ_NODE_PORT:-5672}}")
for port in "${ports[@]}"; do
  # It may listen on the container's address only.
  for host in 127.0.0.1 "${HOSTNAME:-localhost}"; do
    (exec 3<>"/dev/tcp/$host/$port") 2>/dev/null && continue 2
  done
  echo "nobody listens on port $port"
  exit 1
done
