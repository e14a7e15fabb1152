#!/usr/bin/env bash
# rabbitmqadmin, as operators and scripts use it. compat/matrix/playing.py describes the protocol with the harness.
set -uo pipefail

address=${MANAGEMENT_URL##*@}
name() { echo "$PREFIX.$1"; }

# RabbitMQ's own program, whatever comes first in PATH.
admin() { /usr/bin/rabbitmqadmin --host "${address%:*}" --port "${address##*:}" --username guest --password "${password:-guest}" "$@" 2>&1; }
quiet() { local out; out=$(admin "$@") || { reason="$* said ${out//$'\n'/ }"; return 1; }; }
plain() { admin --format tsv "$@" | tail -n +2; }

# The scenario's reason to fail is the first thing that is not as it should be.
same() { [ "$1" = "$2" ] || { reason="got '${1//$'\n'/ }' instead of '$2'"; return 1; }; }
contains() { [[ "$1" == *"$2"* ]] || { reason="'$2' is not in '${1//$'\n'/ }'"; return 1; }; }
unsupported() { reason="$1"; return 3; }
ask() { local answer; echo "$1"; read -r answer <&3; [ "$answer" = DONE ]; }
soon() { for _ in $(seq 100); do "$@" && return; sleep 0.1; done; return 1; }
bodies() { admin --format raw_json get queue="$1" count="$2" "${@:3}" | /usr/bin/python3 -c 'import json, sys; print(*(m["payload"] for m in json.load(sys.stdin)))'; }

connect() {
  local q what; q=$(name connect)
  for what in connections channels consumers exchanges queues bindings users vhosts permissions nodes parameters policies \
      operator_policies vhost_limits; do
    quiet list $what || return 1
  done
  quiet show overview && quiet declare queue name="$q" durable=false && quiet publish routing_key="$q" payload=hello &&
    same "$(bodies "$q" 1 ackmode=ack_requeue_false)" hello && quiet delete queue name="$q"
}

topology() {
  local x q own out; x=$(name events) q=$(name topology) own=$(name vhost) out=$(mktemp)
  quiet declare exchange name="$x" type=topic && quiet declare queue name="$q" &&
    quiet declare binding source="$x" destination="$q" routing_key='order.#' &&
    quiet publish exchange="$x" routing_key=order.created payload=1 &&
    soon same "$(plain list bindings source destination routing_key | grep -F "$x")" "$x	$q	order.#" &&
    quiet delete binding source="$x" destination_type=queue destination="$q" properties_key='order.%23' &&
    contains "$(admin publish exchange="$x" routing_key=order.created payload=2)" "NOT routed" &&
    quiet purge queue name="$q" &&
    contains "$(admin declare queue name="$q" durable=false)" inequivalent &&
    contains "$(admin delete queue name="$(name missing)")" "Not found" &&
    quiet delete queue name="$q" && quiet delete exchange name="$x" &&
    quiet declare vhost name="$own" && quiet declare user name="$own" password=secret tags=management &&
    quiet declare permission vhost="$own" user="$own" configure='.*' write='.*' read='.*' &&
    quiet declare vhost_limit vhost="$own" name=max-queues value=7 &&
    quiet export "$out" && contains "$(<"$out")" "$own" && quiet import "$out" &&
    quiet delete user name="$own" && quiet delete vhost name="$own"
}

returns() { contains "$(admin publish routing_key="$(name nobody)" payload=lost)" "NOT routed"; }

requeue() {
  local q; q=$(name requeue)
  quiet declare queue name="$q" && quiet publish routing_key="$q" payload=again &&
    same "$(bodies "$q" 1 ackmode=reject_requeue_true)" again && same "$(bodies "$q" 1 ackmode=ack_requeue_false)" again &&
    quiet delete queue name="$q"
}

# Rejected in one queue, by a policy for all that are named so it is in the next.
dead_letter() {
  local work dead; work=$(name work) dead=$(name dead)
  quiet declare queue name="$dead" && quiet declare queue name="$work" &&
    quiet declare policy name="$work" pattern="^$work\$" apply-to=queues \
      definition="{\"dead-letter-exchange\": \"\", \"dead-letter-routing-key\": \"$dead\"}" || return 1
  sleep 0.5
  quiet publish routing_key="$work" payload=try && same "$(bodies "$work" 1 ackmode=reject_requeue_false)" try &&
    sleep 0.3 && same "$(bodies "$dead" 1 ackmode=ack_requeue_false)" try &&
    quiet delete queue name="$work" && quiet delete queue name="$dead" && quiet delete policy name="$work"
}

ttl() {
  local q; q=$(name ttl)
  quiet declare queue name="$q" arguments='{"x-message-ttl": 200}' && quiet publish routing_key="$q" payload=gone &&
    sleep 0.6 && same "$(bodies "$q" 1)" "" && quiet delete queue name="$q"
}

priority() {
  local q p; q=$(name priority)
  quiet declare queue name="$q" arguments='{"x-max-priority": 5}' || return 1
  for p in 1 5 3; do quiet publish routing_key="$q" payload=$p properties="{\"priority\": $p}" || return 1; done
  same "$(bodies "$q" 3 ackmode=ack_requeue_false)" "5 3 1" && quiet delete queue name="$q"
}

stream() {
  local q; q=$(name stream)
  quiet declare queue name="$q" queue_type=stream && contains "$(plain list queues name type | grep -F "$q")" stream &&
    quiet delete queue name="$q"
}

wrong_password() { password=wrong; local said; said=$(admin list queues); unset password; contains "$said" "Access refused"; }

reconnect() {
  local q; q=$(name reconnect)
  quiet declare queue name="$q" && quiet publish routing_key="$q" payload=kept properties='{"delivery_mode": 2}' &&
    ask RESTART && soon quiet list queues && same "$(bodies "$q" 1 ackmode=ack_requeue_false)" kept && quiet delete queue name="$q"
}

confirms() { unsupported "it speaks HTTP alone"; }
consume() { confirms; }
rpc() { confirms; }
server_named() { confirms; }
cancel() { confirms; }
large() { unsupported "the HTTP API takes no body of that size"; }
tls() { unsupported "the harness has the HTTP API without TLS"; }
forced_close() { unsupported "it has no connection that lasts"; }

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
