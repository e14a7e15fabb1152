#!/usr/bin/env bash
# Health check of the image: succeed if each AMQP port of the broker accepts connections. It takes two milliseconds. The
# port opens when everything is loaded; only the scripts of /docker-entrypoint-init.d run later.
run=${AMQP_BROKER_RUNTIME_DIR:-/tmp/amqp-broker}
if [ -e "$run/initialising" ]; then
  echo "the scripts of /docker-entrypoint-init.d are running"
  exit 1
fi

# Control sockets are named after the ports, whatever source set these.
shopt -s nullglob
ports=("$run"/*.sock)
ports=("${ports[@]##*/}")
ports=("${ports[@]%.sock}")
[ ${#ports[@]} -gt 0 ] || ports=("${AMQP_BROKER_PORT:-${RABBITMQ_NODE_PORT:-5672}}")
for port in "${ports[@]}"; do
  # The broker may listen on the address of the container only.
  for host in 127.0.0.1 "${HOSTNAME:-localhost}"; do
    (exec 3<>"/dev/tcp/$host/$port") 2>/dev/null && continue 2
  done
  echo "no broker listens on port $port"
  exit 1
done
