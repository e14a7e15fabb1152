"""Makers of random steps, with the weight of each. Values are drawn from the tables of `choices.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st
from pamqp import commands
from pamqp.commands import Basic, Confirm, Exchange, Queue, Tx

from amqp_broker.conformance.duel.http_steps import COUNTS, EVERYTHING, PERMISSIONS, TOPIC_PERMISSIONS
from amqp_broker.conformance.duel.steps import At, Call, End, Http, Publish, Settle, Step, Wait
from amqp_broker.conformance.wire import Method
from compat.duel import choices

Draw = st.DrawFn
Make = Callable[[Draw, At], Step]
Options = Mapping[str, Any]


def declare_queue(draw: Draw, at: At) -> Step:
    kind = draw(choices.KINDS)
    odd = draw(choices.ODD_ARGUMENTS) if draw(choices.SELDOM) else {}
    return declaration(draw, at, draw(choices.QUEUES), kind, odd)


def declaration(
    draw: Draw,
    at: At,
    queue: str,
    kind: str,
    certain: Options,
    flags: st.SearchStrategy[dict[str, bool]] = choices.QUEUE_FLAGS,
) -> Step:
    arguments: dict[str, Any] = {"x-queue-type": kind} if kind else {}
    for _ in range(draw(choices.ARGUMENTS_COUNT)):
        arguments |= draw(choices.ARGUMENTS[kind])
    arguments |= certain
    if choices.DELAYED_RETRY in arguments:
        # A quorum queue of RabbitMQ 4.3.6 that delays more messages than its limit looks for ready ones for ever.
        arguments = {name: value for name, value in arguments.items() if not name.startswith("x-max-length")}
    fields = {"queue": queue, **draw(flags)}
    return Call(at, Queue.Declare, {"durable": False, **fields, **({"arguments": arguments} if arguments else {})})


def publishing(properties: st.SearchStrategy[dict[str, Any]], is_routed: st.SearchStrategy[bool]) -> Make:
    """Return a maker of publishes, to an exchange or to a queue."""

    def make(draw: Draw, at: At) -> Step:
        options: dict[str, Any]
        if draw(is_routed):
            options = {"exchange": draw(choices.EXCHANGES), "routing_key": draw(choices.KEYS)}
        else:
            options = {"routing_key": draw(choices.QUEUES)}
        options |= draw(choices.FLAGS)
        options |= draw(properties)
        return Publish(at, options, *draw(choices.COUNTS_AND_SIZES))

    return make


publish = publishing(choices.PROPERTIES, choices.SELDOM)


def settle(draw: Draw, at: At) -> Step:
    verb, options = draw(choices.SETTLEMENTS)
    return Settle(at, verb, draw(choices.PICKS), options)


def consume(draw: Draw, at: At) -> Step:
    fields = {"queue": draw(choices.QUEUES), "consumer_tag": draw(choices.TAGS), **draw(choices.CONSUME_FLAGS)}
    return Call(at, Basic.Consume, fields)


def qos(draw: Draw, at: At) -> Step:
    fields = {"prefetch_count": draw(choices.PREFETCHES)}
    return Call(at, Basic.Qos, {**fields, "global_": True} if draw(choices.SELDOM) else fields)


def declare_exchange(draw: Draw, at: At) -> Step:
    fields = {"exchange": draw(choices.EXCHANGES), "exchange_type": draw(choices.EXCHANGE_KINDS)}
    return Call(at, Exchange.Declare, {**fields, **draw(choices.EXCHANGE_FLAGS)})


def end(draw: Draw, at: At) -> Step:
    return End(at.connection, draw(choices.HALF))


def wait(draw: Draw, at: At) -> Step:
    return Wait(choices.WAIT_MS)


def policies(
    definitions: st.SearchStrategy[dict[str, Any]] = choices.DEFINITIONS,
    operator_definitions: st.SearchStrategy[dict[str, Any]] = choices.OPERATOR_DEFINITIONS,
    is_operators: st.SearchStrategy[bool] = choices.SELDOM,
    is_cleared: st.SearchStrategy[bool] = choices.SELDOM,
) -> Make:
    """Return a maker of policies of users and operators, which are set, changed and cleared."""

    def make(draw: Draw, at: At) -> Step:
        is_by_operator = draw(is_operators)
        number = int(draw(choices.SELDOM))
        path = f"{'operator-policies' if is_by_operator else 'policies'}/{{vhost}}/{{prefix}}p{number}"
        if draw(is_cleared):
            return Http("DELETE", path)
        return _policy_of(draw, path, number, draw(operator_definitions if is_by_operator else definitions))

    return make


def _policy_of(draw: Draw, path: str, number: int, definition: Options) -> Step:
    # Octets are not limited in streams, which RabbitMQ shortens by whole segments only.
    apply_to = "quorum_queues" if "max-length-bytes" in definition else draw(choices.APPLY_TO)
    pattern = draw(choices.PATTERNS)
    if "alternate-exchange" in definition:
        apply_to, pattern = "all", "^{prefix}"
    body = {"pattern": pattern, "definition": definition, "apply-to": apply_to}
    # No two are equal: RabbitMQ takes any of equal ones.
    return Http("PUT", path, {**body, "priority": number + 2 * draw(choices.HALF)})


policy = policies()


def http_publish(draw: Draw, at: At) -> Step:
    body = {"routing_key": f"{{prefix}}{draw(choices.QUEUES)}", "payload": "{number}", "payload_encoding": "string"}
    return Http("POST", "exchanges/{vhost}/amq.default/publish", {**body, "properties": {}})


def http_get(draw: Draw, at: At) -> Step:
    body = {"count": 2, "ackmode": draw(choices.ACK_MODES), "encoding": "auto"}
    return Http("POST", f"queues/{{vhost}}/{{prefix}}{draw(choices.QUEUES)}/get", body)


def http_counts(draw: Draw, at: At) -> Step:
    return Http("GET", f"queues/{{vhost}}/{{prefix}}{draw(choices.QUEUES)}?columns={COUNTS}")


def permissions(draw: Draw, at: At) -> Step:
    if draw(choices.SELDOM):
        return Http("DELETE", PERMISSIONS)
    if draw(choices.NOW_AND_THEN):
        return Http("PUT", PERMISSIONS, dict.fromkeys(EVERYTHING, ""))
    return Http("PUT", PERMISSIONS, {verb: draw(choices.NAME_PATTERNS) for verb in EVERYTHING})


def topic_permissions(draw: Draw, at: At) -> Step:
    if draw(choices.SELDOM):
        return Http("DELETE", TOPIC_PERMISSIONS)
    exchange = f"{{prefix}}{draw(choices.EXCHANGES)}"
    patterns = {verb: draw(choices.KEY_PATTERNS) for verb in ("write", "read")}
    return Http("PUT", TOPIC_PERMISSIONS, {"exchange": exchange, **patterns})


def limit(draw: Draw, at: At) -> Step:
    path = f"vhost-limits/{{vhost}}/{draw(choices.LIMITS)}"
    return Http("DELETE", path) if draw(choices.SELDOM) else Http("PUT", path, {"value": draw(choices.PREFETCHES)})


def _call(method: Method, **strategies: Any) -> Make:
    """Return a maker of calls; a field that is a strategy is drawn."""

    def make(draw: Draw, at: At) -> Step:
        fields = {
            name: draw(value) if isinstance(value, st.SearchStrategy) else value for name, value in strategies.items()
        }
        return Call(at, method, fields)

    return make


def _binding(method: Method, **strategies: Any) -> Make:
    call = _call(method, **strategies, routing_key=choices.KEYS)

    def make(draw: Draw, at: At) -> Step:
        step = call(draw, at)
        assert isinstance(step, Call)
        return Call(at, method, {**step.fields, **draw(choices.BINDING_ARGUMENTS)})

    return make


_OF_QUEUE = {"queue": choices.QUEUES, "exchange": choices.EXCHANGES}
_OF_EXCHANGE = {"destination": choices.EXCHANGES, "source": choices.EXCHANGES}
bind, unbind = _binding(Queue.Bind, **_OF_QUEUE), _binding(Queue.Unbind, **_OF_QUEUE)
bind_exchange, unbind_exchange = _binding(Exchange.Bind, **_OF_EXCHANGE), _binding(Exchange.Unbind, **_OF_EXCHANGE)
get = _call(Basic.Get, queue=choices.QUEUES, no_ack=choices.SELDOM)
cancel = _call(Basic.Cancel, consumer_tag=choices.TAGS)
recover = _call(Basic.Recover, requeue=choices.OFTEN)
tx_select, tx_commit, tx_rollback = _call(Tx.Select), _call(Tx.Commit), _call(Tx.Rollback)
declare_passively = _call(Queue.Declare, queue=choices.QUEUES, passive=True)
purge = _call(Queue.Purge, queue=choices.QUEUES)
delete_queue = _call(Queue.Delete, queue=choices.QUEUES, if_unused=choices.SELDOM, if_empty=choices.SELDOM)
delete_exchange = _call(Exchange.Delete, exchange=choices.EXCHANGES, if_unused=choices.HALF)
close_channel = _call(commands.Channel.Close, reply_code=200)
# No step is the simplest one.
MAKERS: list[tuple[Make | None, int]] = [
    (None, 30),
    (publish, 60),
    (settle, 48),
    (consume, 30),
    (get, 18),
    (declare_queue, 10),
    (qos, 15),
    (bind, 15),
    (declare_exchange, 10),
    (cancel, 10),
    (recover, 5),
    (_call(Confirm.Select), 8),
    (tx_select, 2),
    (tx_commit, 3),
    (tx_rollback, 2),
    (purge, 4),
    (declare_passively, 2),
    (_call(Exchange.Declare, exchange=choices.EXCHANGES, exchange_type="fanout", passive=True), 1),
    (unbind, 3),
    (bind_exchange, 3),
    (unbind_exchange, 2),
    (delete_queue, 3),
    (delete_exchange, 2),
    (close_channel, 6),
    (end, 8),
    (wait, 1),
    (policy, 5),
    (http_publish, 2),
    (http_get, 2),
    (http_counts, 1),
    (permissions, 2),
    (topic_permissions, 1),
    (limit, 1),
]
