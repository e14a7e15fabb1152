#!/usr/bin/env bash
# rabbitmqadmin 2, as operators and scripts use it: it reads every answer of the HTTP API into types of its own.
# compat/matrix/playing.py describes the protocol with the harness.
set -uo pipefail

address=${MANAGEMENT_URL##*@}
name() { echo "$PREFIX.$1"; }

admin() {
  bin/rabbitmqadmin --non-interactive --host "${address%:*}" --port "${address##*:}" --username guest \
    --password "${password:-guest}" "$@" 2>&1
}
quiet() { local out; out=$(admin "$@") || { reason="$* said ${out//$'\n'/ }"; return 1; }; }

# The scenario's reason to fail is the first thing that is not as it should be.
same() { [ "$1" = "$2" ] || { reason="got '${1//$'\n'/ }' instead of '$2'"; return 1; }; }
contains() { [[ "$1" == *"$2"* ]] || { reason="'$2' is not in '${1//$'\n'/ }'"; return 1; }; }
unsupported() { reason="$1"; return 3; }
ask() { local answer; echo "$1"; read -r answer <&3; [ "$answer" = DONE ]; }
soon() { for _ in $(seq 100); do "$@" && return; sleep 0.1; done; return 1; }
queue() { quiet queues declare --name "$1" --durable true "${@:2}"; }
publish() { quiet publish message --routing-key "$1" --payload "$2" "${@:3}"; }
# The payload is the last column but one.
bodies() { admin get messages --queue "$1" --count "$2" --ack-mode "${3:-ack_requeue_false}" | awk 'NF {print $(NF-1)}' | paste -sd' '; }
first_node() { admin nodes list | awk 'NF {print $1; exit}'; }

connect() {
  local q what node; q=$(name connect) node=$(first_node)
  queue "$q" && publish "$q" hello && same "$(bodies "$q" 1)" hello || return 1
  for what in nodes users vhosts permissions connections channels queues exchanges bindings consumers parameters policies \
      operator_policies vhost_limits user_limits feature_flags deprecated_features deprecated_features_in_use; do
    quiet list $what || return 1
  done
  for what in local_alarms cluster_wide_alarms node_is_quorum_critical "protocol_listener --protocol amqp"; do
    # shellcheck disable=SC2086
    quiet health_check $what || return 1
  done
  for what in overview churn "memory_breakdown_in_bytes --node $node" "memory_breakdown_in_percent --node $node"; do
    # shellcheck disable=SC2086
    quiet show $what || return 1
  done
  quiet shovels list_all && quiet global_parameters list && quiet plugins list_all &&
    quiet auth_attempts stats --node "$node" && quiet queues show --name "$q" && quiet queues delete --name "$q"
}

topology() {
  local x q own out; x=$(name events) q=$(name topology) own=$(name vhost) out=$(mktemp)
  quiet exchanges declare --name "$x" --type topic && queue "$q" &&
    quiet bindings declare --source "$x" --destination-type queue --destination "$q" --routing-key 'order.#' &&
    quiet publish message --exchange "$x" --routing-key order.created --payload 1 &&
    contains "$(admin bindings list)" 'order.%23' &&
    quiet bindings delete --source "$x" --destination-type queue --destination "$q" --routing-key 'order.#' &&
    contains "$(admin publish message --exchange "$x" --routing-key order.created --payload 2)" "NOT routed" &&
    quiet queues purge --name "$q" &&
    contains "$(admin queues declare --name "$q" --durable false)" inequivalent &&
    contains "$(admin queues delete --name "$(name missing)")" "Not Found" &&
    quiet queues delete --name "$q" && quiet exchanges delete --name "$x" &&
    quiet vhosts declare --name "$own" --default-queue-type quorum &&
    quiet users declare --name "$own" --password secret --tags management &&
    quiet --vhost "$own" permissions declare --user "$own" --configure '.*' --write '.*' --read '.*' &&
    quiet --vhost "$own" vhost_limits declare --name max-queues --value 7 &&
    quiet definitions export --file "$out" && contains "$(<"$out")" "$own" && quiet definitions import --file "$out" &&
    quiet users delete --name "$own" && quiet vhosts delete --name "$own"
}

returns() { contains "$(admin publish message --routing-key "$(name nobody)" --payload lost)" "NOT routed"; }

requeue() {
  local q; q=$(name requeue)
  queue "$q" && publish "$q" again && same "$(bodies "$q" 1 reject_requeue_true)" again &&
    same "$(bodies "$q" 1)" again && quiet queues delete --name "$q"
}

# Rejected in one queue, by a policy for all that are named so it is in the next.
dead_letter() {
  local work dead; work=$(name work) dead=$(name dead)
  queue "$dead" && queue "$work" &&
    quiet policies declare --name "$work" --pattern "^$work\$" --apply-to queues \
      --definition "{\"dead-letter-exchange\": \"\", \"dead-letter-routing-key\": \"$dead\"}" || return 1
  publish "$work" try && same "$(bodies "$work" 1 reject_requeue_false)" try && soon same "$(bodies "$dead" 1)" try &&
    quiet queues delete --name "$work" && quiet queues delete --name "$dead" && quiet policies delete --name "$work"
}

ttl() {
  local q; q=$(name ttl)
  queue "$q" --arguments '{"x-message-ttl": 200}' && publish "$q" gone && sleep 0.6 && same "$(bodies "$q" 1)" "" &&
    quiet queues delete --name "$q"
}

priority() {
  local q p; q=$(name priority)
  queue "$q" --arguments '{"x-max-priority": 5}' || return 1
  for p in 1 5 3; do publish "$q" $p --properties "{\"priority\": $p}" || return 1; done
  same "$(bodies "$q" 3)" "5 3 1" && quiet queues delete --name "$q"
}

stream() {
  local q; q=$(name stream)
  quiet streams declare --name "$q" --expiration 8h && contains "$(admin streams list | grep -F "$q")" stream &&
    quiet streams show --name "$q" && quiet streams delete --name "$q"
}

wrong_password() {
  password=wrong; local said; said=$(admin queues list); unset password
  # The words of RabbitMQ 4, and of RabbitMQ 3.
  [[ "$said" == *Not_Authorized* ]] || contains "$said" "Login failed"
}

reconnect() {
  local q; q=$(name reconnect)
  queue "$q" && publish "$q" kept --properties '{"delivery_mode": 2}' && ask RESTART && soon quiet queues list &&
    same "$(bodies "$q" 1)" kept && quiet queues delete --name "$q"
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
