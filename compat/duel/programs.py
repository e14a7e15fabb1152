"""Random programs. The weights of `choices.py` make the interesting happen: few names, small limits, full queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st
from pamqp import commands
from pamqp.commands import Basic, Confirm, Exchange, Queue, Tx

from amqp_broker.conformance.wire import Method
from compat.duel import choices
from compat.duel.http_steps import EVERYTHING, PERMISSIONS
from compat.duel.steps import At, Call, End, Http, Program, Publish, Settle, Step, Wait

# Steps of a list, some of which are none; an average list has 40.
LIST_MIN, LIST_MAX = 20, 60
WAIT_MS = choices.SHORT_MS + 500

Draw = st.DrawFn
Make = Callable[[Draw, At], Step]
Options = Mapping[str, Any]


def _declare_queue(draw: Draw, at: At, queue: str | None = None) -> Step:
    kind = draw(choices.KINDS)
    arguments: dict[str, Any] = {"x-queue-type": kind} if kind else {}
    for _ in range(draw(choices.ARGUMENTS_COUNT)):
        arguments |= draw(choices.ARGUMENTS[kind])
    if queue is None and draw(choices.SELDOM):
        arguments |= draw(choices.ODD_ARGUMENTS)
    fields = {"queue": draw(choices.QUEUES) if queue is None else queue, **draw(choices.QUEUE_FLAGS)}
    return Call(at, Queue.Declare, {"durable": False, **fields, **({"arguments": arguments} if arguments else {})})


def _publish(draw: Draw, at: At) -> Step:
    options: dict[str, Any]
    if draw(choices.SELDOM):
        options = {"exchange": draw(choices.EXCHANGES), "routing_key": draw(choices.KEYS)}
    else:
        options = {"routing_key": draw(choices.QUEUES)}
    options |= draw(choices.FLAGS)
    options |= draw(choices.PROPERTIES)
    return Publish(at, options, *draw(choices.COUNTS_AND_SIZES))


def _settle(draw: Draw, at: At) -> Step:
    verb, options = draw(choices.SETTLEMENTS)
    return Settle(at, verb, draw(choices.PICKS), options)


def _consume(draw: Draw, at: At) -> Step:
    fields = {"queue": draw(choices.QUEUES), "consumer_tag": draw(choices.TAGS), **draw(choices.CONSUME_FLAGS)}
    return Call(at, Basic.Consume, fields)


def _qos(draw: Draw, at: At) -> Step:
    fields = {"prefetch_count": draw(choices.PREFETCHES)}
    return Call(at, Basic.Qos, {**fields, "global_": True} if draw(choices.SELDOM) else fields)


def _declare_exchange(draw: Draw, at: At) -> Step:
    fields = {"exchange": draw(choices.EXCHANGES), "exchange_type": draw(choices.EXCHANGE_KINDS)}
    return Call(at, Exchange.Declare, {**fields, **draw(choices.EXCHANGE_FLAGS)})


def _end(draw: Draw, at: At) -> Step:
    return End(at.connection, draw(choices.HALF))


def _wait(draw: Draw, at: At) -> Step:
    return Wait(WAIT_MS)


def _policy(draw: Draw, at: At) -> Step:
    is_operators = draw(choices.SELDOM)
    number = int(draw(choices.SELDOM))
    path = f"{'operator-policies' if is_operators else 'policies'}/{{vhost}}/{{prefix}}p{number}"
    if draw(choices.SELDOM):
        return Http("DELETE", path)
    definition = draw(choices.OPERATOR_DEFINITIONS if is_operators else choices.DEFINITIONS)
    body = {"pattern": draw(choices.PATTERNS), "definition": definition, "apply-to": draw(choices.APPLY_TO)}
    # No two are equal: RabbitMQ takes any of equal ones.
    return Http("PUT", path, {**body, "priority": number + 2 * draw(choices.HALF)})


def _http_publish(draw: Draw, at: At) -> Step:
    body = {"routing_key": f"{{prefix}}{draw(choices.QUEUES)}", "payload": "{number}", "payload_encoding": "string"}
    return Http("POST", "exchanges/{vhost}/amq.default/publish", {**body, "properties": {}})


def _http_get(draw: Draw, at: At) -> Step:
    body = {"count": 2, "ackmode": draw(choices.ACK_MODES), "encoding": "auto"}
    return Http("POST", f"queues/{{vhost}}/{{prefix}}{draw(choices.QUEUES)}/get", body)


def _permissions(draw: Draw, at: At) -> Step:
    return Http("PUT", PERMISSIONS, {verb: draw(choices.NAME_PATTERNS) for verb in EVERYTHING})


def _limit(draw: Draw, at: At) -> Step:
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
_MAKERS: list[tuple[Make | None, int]] = [
    (None, 30),
    (_publish, 60),
    (_settle, 48),
    (_consume, 30),
    (_call(Basic.Get, queue=choices.QUEUES, no_ack=choices.SELDOM), 18),
    (_declare_queue, 10),
    (_qos, 15),
    (_binding(Queue.Bind, **_OF_QUEUE), 15),
    (_declare_exchange, 10),
    (_call(Basic.Cancel, consumer_tag=choices.TAGS), 10),
    (_call(Basic.Recover, requeue=choices.OFTEN), 5),
    (_call(Confirm.Select), 8),
    (_call(Tx.Select), 2),
    (_call(Tx.Commit), 3),
    (_call(Tx.Rollback), 2),
    (_call(Queue.Purge, queue=choices.QUEUES), 4),
    (_call(Queue.Declare, queue=choices.QUEUES, passive=True), 2),
    (_call(Exchange.Declare, exchange=choices.EXCHANGES, exchange_type="fanout", passive=True), 1),
    (_binding(Queue.Unbind, **_OF_QUEUE), 3),
    (_binding(Exchange.Bind, **_OF_EXCHANGE), 3),
    (_binding(Exchange.Unbind, **_OF_EXCHANGE), 2),
    (_call(Queue.Delete, queue=choices.QUEUES, if_unused=choices.HALF, if_empty=choices.HALF), 3),
    (_call(Exchange.Delete, exchange=choices.EXCHANGES, if_unused=choices.HALF), 2),
    (_call(commands.Channel.Close, reply_code=200), 6),
    (_end, 8),
    (_wait, 1),
    (_policy, 5),
    (_http_publish, 2),
    (_http_get, 2),
    (_permissions, 2),
    (_limit, 1),
]
MAKERS = choices.weighted(*_MAKERS)


@st.composite
def steps(draw: Draw) -> Step | None:
    """Draw a step; hypothesis replaces a needless one by None."""
    make = draw(MAKERS)
    return None if make is None else make(draw, draw(choices.ATS))


STEPS = steps()
QUEUE_COUNTS = choices.weighted(((choices.Q0,), 2), ((choices.Q0, choices.Q1), 4), ((choices.Q1, choices.Q0), 1))


@st.composite
def programs(draw: Draw) -> Program:
    """Draw a program, which begins with queues and consumers."""
    begun = [_declare_queue(draw, At(), queue) for queue in draw(QUEUE_COUNTS)]
    for at in draw(choices.CONSUMERS):
        begun += [_qos(draw, at), _consume(draw, at)]
    drawn = draw(st.lists(STEPS, min_size=LIST_MIN, max_size=LIST_MAX))
    return (*begun, *(step for step in drawn if step is not None))
