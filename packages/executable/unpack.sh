#!/bin/sh
# The single executable of amqp-broker: the first run unpacks it, and all runs become the program below.
set -eu
if [ -n "${XDG_CACHE_HOME:-}" ]; then
  cache=$XDG_CACHE_HOME/amqp-broker
elif [ -w "${HOME:-/dev/null}" ]; then
  cache=$HOME/.cache/amqp-broker
else
  cache=${TMPDIR:-/tmp}/amqp-broker-$(id -u)
fi
program=$cache/@NAME@
if [ ! -x "$program/amqp-broker" ]; then
  mkdir -p "$cache"
  chmod 700 "$cache"
  new=$(mktemp -d "$cache/new.XXXXXXXX")
  if ! tail -n +@LINE@ "$0" | tar -xzf - -C "$new"; then
    rm -rf "$new"
    echo "amqp-broker: cannot unpack into $cache." >&2
    exit 73
  fi
  # Another process may have been faster.
  mv -T "$new/program" "$program" 2>/dev/null || true
  rm -rf "$new"
fi
# Links to this file have the names of RabbitMQ's tools.
AMQP_BROKER_CALLED_AS=${0##*/} exec "$program/amqp-broker" "$@"
