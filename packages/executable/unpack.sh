#!/bin/sh
# The single executable of amqp-broker: the first run unpacks it, and all runs become the program below.
set -eu
name=@NAME@
# Places in the order of preference; an unset variable leaves its place out.
for cache in "${XDG_CACHE_HOME:+$XDG_CACHE_HOME/amqp-broker}" "${HOME:+$HOME/.cache/amqp-broker}" \
  "${TMPDIR:-/tmp}/amqp-broker-$(id -u)"; do
  [ -n "$cache" ] || continue
  program=$cache/$name
  # Something may have deleted old files there: the library stands for all of them.
  if [ -O "$cache" ] && [ -x "$program/amqp-broker" ] && [ -e "$program/_internal/@LIBRARY@" ]; then
    break
  fi
  if mkdir -p "$cache" 2>/dev/null && [ -O "$cache" ] && [ -w "$cache" ]; then
    chmod 700 "$cache"
    new=$(mktemp -d "$cache/new.XXXXXXXX")
    trap 'rm -rf "$new"' EXIT
    trap 'exit 130' HUP INT TERM
    if tail -n +@LINE@ "$0" | tar -xzf - -C "$new" 2>/dev/null; then
      # Another process may have been faster; a damaged folder makes room.
      [ -e "$program/_internal/@LIBRARY@" ] || rm -rf "$program"
      mv -T "$new/program" "$program" 2>/dev/null || true
      rm -rf "$new"
      trap - EXIT HUP INT TERM
      break
    fi
    rm -rf "$new"
    trap - EXIT HUP INT TERM
  fi
  program=
done
if [ -z "$program" ]; then
  echo "amqp-broker: no place to unpack into, last tried: $cache. Set XDG_CACHE_HOME to a folder that can be written." >&2
  exit 73
fi
# Links to this file have the names of RabbitMQ's tools.
AMQP_BROKER_EXECUTABLE=$(cd "$(dirname "$0")" && pwd)/${0##*/} AMQP_BROKER_CALLED_AS=${0##*/} \
  exec "$program/amqp-broker" "$@"
