#!/usr/bin/env bash
# amqp-tools, as shell scripts use them. compat/matrix/playing.py describes the protocol with the harness.
set -uo pipefail

at=(--url "$AMQP_URL")
name() { echo "$PREFIX.$1"; }

# The scenario's reason to fail is the first thing that is not as it should be.
same() { [ "$1" = "$2" ] || { reason="${3:-}got '$1' instead of '$2'"; return 1; }; }
contains() { [[ "$1" == *"$2"* ]] || { reason="'$2' is not in '${1//$'\n'/ }'"; return 1; }; }
unsupported() { reason="$1"; return 3; }
declared() { amqp-declare-queue "${at[@]}" -q "$1" "${@:2}" >/dev/null; }
deleted() { amqp-delete-queue "${at[@]}" -q "$1" >/dev/null; }
publish() { amqp-publish "${at[@]}" -r "$1" -b "$2" "${@:3}"; }
ask() { local answer; echo "$1"; read -r answer <&3; [ "$answer" = DONE ]; }

connect() {
  local q; q=$(name connect)
  declared "$q" && publish "$q" hello -C text/plain -H 'n: 1' &&
    same "$(amqp-get "${at[@]}" -q "$q")" hello && deleted "$q"
}

topology() {
  local q printed; q=$(name topology)
  printed=$(amqp-declare-queue "${at[@]}" -q "$q" -d) && same "$printed" "$q" &&
    contains "$(amqp-declare-queue "${at[@]}" -q "$q" 2>&1)" 406 &&
    contains "$(amqp-publish "${at[@]}" -e "$(name missing)" -r x -b x 2>&1; amqp-get "${at[@]}" -q "$(name missing)" 2>&1)" 404 &&
    publish "$q" 1 && same "$(amqp-delete-queue "${at[@]}" -q "$q")" 1
}

# The command has its message as standard input; the tool acknowledges when it has ended well, and goes on.
consume() {
  local q; q=$(name consume)
  declared "$q" && seq 0 9 | amqp-publish "${at[@]}" -r "$q" -l &&
    same "$(timeout 15 amqp-consume "${at[@]}" -q "$q" -p 3 -c 10 cat | tr -d '\n')" 0123456789 && deleted "$q"
}

# A command that fails has the tool reject its message, and the next one take it again.
requeue() {
  local q; q=$(name requeue)
  declared "$q" && publish "$q" again || return 1
  timeout 15 amqp-consume "${at[@]}" -q "$q" -c 1 false >/dev/null 2>&1
  same "$(timeout 15 amqp-consume "${at[@]}" -q "$q" -c 1 cat)" again && deleted "$q"
}

server_named() {
  local q out; out=$(mktemp)
  q=$(amqp-declare-queue "${at[@]}" -q "") && same "${q:0:8}" amq.gen- && deleted "$q" || return 1
  # An exclusive queue of the consumer's own, bound to an exchange.
  timeout 15 amqp-consume "${at[@]}" -e amq.fanout -r any -x -c 1 cat >"$out" 2>&1 &
  for _ in $(seq 100); do
    amqp-publish "${at[@]}" -e amq.fanout -b told
    sleep 0.1
    jobs -r | grep -q . || break
  done
  wait
  contains "$(<"$out")" told
}

large() {
  local q there back; q=$(name large) there=$(mktemp) back=$(mktemp)
  head -c 16777216 /dev/urandom >"$there"
  declared "$q" && amqp-publish "${at[@]}" -r "$q" <"$there" && amqp-get "${at[@]}" -q "$q" >"$back" && cmp "$there" "$back" && deleted "$q"
}

tls() {
  local q; q=$(name tls)
  same "$(amqp-declare-queue --url "$AMQPS_URL" --cacert "$CA_FILE" -q "$q")" "$q" && deleted "$q" || return 1
  if amqp-declare-queue --url "$AMQPS_URL" -q "$q" >/dev/null 2>&1; then same connected refused; fi
}

wrong_password() { contains "$(amqp-declare-queue --url "${AMQP_URL/guest:guest@/guest:wrong@}" -q x 2>&1)" 403; }

reconnect() {
  local q; q=$(name reconnect)
  # Without confirms, nothing reports when it is written.
  declared "$q" -d && publish "$q" kept -p && sleep 1 && ask RESTART && same "$(amqp-get "${at[@]}" -q "$q")" kept && deleted "$q"
}

confirms() { unsupported "it has no confirms"; }
returns() { unsupported "it cannot publish as mandatory"; }
dead_letter() { unsupported "it declares queues without arguments"; }
ttl() { dead_letter; }
priority() { dead_letter; }
stream() { dead_letter; }
rpc() { unsupported "each command has a connection of its own, and an answer needs the asker's"; }
forced_close() { unsupported "amqp-consume ignores it"; }
cancel() { unsupported "it does not ask for the notification"; }

exec 3<&0 </dev/null
for scenario in "$@"; do
  reason=""
  "$scenario"
  case $? in
    0) echo "RESULT $scenario ok" ;;
    3) echo "RESULT $scenario unsupported $reason" ;;
    *) echo "RESULT $scenario failed ${reason:-a command failed}" ;;
  esac
done
