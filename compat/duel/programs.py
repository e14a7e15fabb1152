"""Random programs. The weights of `choices.py` make the interesting happen: few names, small limits, full queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hypothesis import strategies as st
from pamqp import commands
from pamqp.commands import Basic, Confirm, Exchange, Queue, Tx

from amqp_broker.conformance.duel.http_steps import COUNTS, EVERYTHING, PERMISSIONS, TOPIC_PERMISSIONS
from amqp_broker.conformance.duel.steps import At, Call, End, Http, Name, Program, Publish, Settle, Step, Wait
from amqp_broker.conformance.wire import Method
from compat.duel import choices

# Steps of a list, some of which are none; an average list has 40.
LIST_MIN, LIST_MAX = 20, 60
# Fewer steps where time passes, so that it passes in waits most of all.
TIMED_MAX = 35

Draw = st.DrawFn
Make = Callable[[Draw, At], Step]
Options = Mapping[str, Any]


def _declare_queue(draw: Draw, at: At) -> Step:
    kind = draw(choices.KINDS)
    odd = draw(choices.ODD_ARGUMENTS) if draw(choices.SELDOM) else {}
    return _declaration(draw, at, draw(choices.QUEUES), kind, odd)


def _declaration(
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


def _publishing(properties: st.SearchStrategy[dict[str, Any]], is_routed: st.SearchStrategy[bool]) -> Make:
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


_publish = _publishing(choices.PROPERTIES, choices.SELDOM)


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
    return Wait(choices.WAIT_MS)


def _policies(
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


_policy = _policies()


def _http_publish(draw: Draw, at: At) -> Step:
    body = {"routing_key": f"{{prefix}}{draw(choices.QUEUES)}", "payload": "{number}", "payload_encoding": "string"}
    return Http("POST", "exchanges/{vhost}/amq.default/publish", {**body, "properties": {}})


def _http_get(draw: Draw, at: At) -> Step:
    body = {"count": 2, "ackmode": draw(choices.ACK_MODES), "encoding": "auto"}
    return Http("POST", f"queues/{{vhost}}/{{prefix}}{draw(choices.QUEUES)}/get", body)


def _http_counts(draw: Draw, at: At) -> Step:
    return Http("GET", f"queues/{{vhost}}/{{prefix}}{draw(choices.QUEUES)}?columns={COUNTS}")


def _permissions(draw: Draw, at: At) -> Step:
    if draw(choices.SELDOM):
        return Http("DELETE", PERMISSIONS)
    if draw(choices.NOW_AND_THEN):
        return Http("PUT", PERMISSIONS, dict.fromkeys(EVERYTHING, ""))
    return Http("PUT", PERMISSIONS, {verb: draw(choices.NAME_PATTERNS) for verb in EVERYTHING})


def _topic_permissions(draw: Draw, at: At) -> Step:
    if draw(choices.SELDOM):
        return Http("DELETE", TOPIC_PERMISSIONS)
    exchange = f"{{prefix}}{draw(choices.EXCHANGES)}"
    patterns = {verb: draw(choices.KEY_PATTERNS) for verb in ("write", "read")}
    return Http("PUT", TOPIC_PERMISSIONS, {"exchange": exchange, **patterns})


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
_bind, _unbind = _binding(Queue.Bind, **_OF_QUEUE), _binding(Queue.Unbind, **_OF_QUEUE)
_bind_exchange, _unbind_exchange = _binding(Exchange.Bind, **_OF_EXCHANGE), _binding(Exchange.Unbind, **_OF_EXCHANGE)
_get = _call(Basic.Get, queue=choices.QUEUES, no_ack=choices.SELDOM)
_cancel = _call(Basic.Cancel, consumer_tag=choices.TAGS)
_recover = _call(Basic.Recover, requeue=choices.OFTEN)
_tx_select, _tx_commit, _tx_rollback = _call(Tx.Select), _call(Tx.Commit), _call(Tx.Rollback)
_declare_passively = _call(Queue.Declare, queue=choices.QUEUES, passive=True)
_purge = _call(Queue.Purge, queue=choices.QUEUES)
_delete_queue = _call(Queue.Delete, queue=choices.QUEUES, if_unused=choices.SELDOM, if_empty=choices.SELDOM)
_delete_exchange = _call(Exchange.Delete, exchange=choices.EXCHANGES, if_unused=choices.HALF)
_close_channel = _call(commands.Channel.Close, reply_code=200)
# No step is the simplest one.
_MAKERS: list[tuple[Make | None, int]] = [
    (None, 30),
    (_publish, 60),
    (_settle, 48),
    (_consume, 30),
    (_get, 18),
    (_declare_queue, 10),
    (_qos, 15),
    (_bind, 15),
    (_declare_exchange, 10),
    (_cancel, 10),
    (_recover, 5),
    (_call(Confirm.Select), 8),
    (_tx_select, 2),
    (_tx_commit, 3),
    (_tx_rollback, 2),
    (_purge, 4),
    (_declare_passively, 2),
    (_call(Exchange.Declare, exchange=choices.EXCHANGES, exchange_type="fanout", passive=True), 1),
    (_unbind, 3),
    (_bind_exchange, 3),
    (_unbind_exchange, 2),
    (_delete_queue, 3),
    (_delete_exchange, 2),
    (_close_channel, 6),
    (_end, 8),
    (_wait, 1),
    (_policy, 5),
    (_http_publish, 2),
    (_http_get, 2),
    (_http_counts, 1),
    (_permissions, 2),
    (_topic_permissions, 1),
    (_limit, 1),
]


_HTTP = (_policy, _http_publish, _http_get, _http_counts, _permissions, _topic_permissions, _limit)


@dataclass(frozen=True)
class Theme:
    """A subject of programs: some steps are frequent. The first queues and the messages have certain values."""

    # The factors of the makers' weights.
    more: Mapping[Make, int] = field(default_factory=dict)
    # Makers in the place of others.
    instead: Mapping[Make, Make] = field(default_factory=dict)
    # The channels of steps, and those that consume at the beginning.
    ats: st.SearchStrategy[At] = choices.ATS
    consumers: st.SearchStrategy[tuple[At, ...]] = choices.CONSUMERS
    # The queues at the beginning.
    queues: st.SearchStrategy[tuple[Name, ...]] = choices.QUEUE_COUNTS
    kind: str = ""
    flags: st.SearchStrategy[dict[str, bool]] = choices.QUEUE_FLAGS
    arguments: st.SearchStrategy[dict[str, Any]] = choices.NOTHING
    arguments_of_q1: st.SearchStrategy[dict[str, Any]] = choices.NOTHING
    properties: st.SearchStrategy[dict[str, Any]] = choices.PROPERTIES
    # Few publishes go to queues directly.
    is_routing: bool = False
    # The program begins with exchanges, to which the first queues are bound.
    is_bound: bool = False
    needs_http: bool = False
    steps_max: int = LIST_MAX

    def arguments_of(self, queue: str) -> st.SearchStrategy[dict[str, Any]]:
        """Return the arguments of a queue at the beginning."""
        if queue == choices.Q1:
            return self.arguments_of_q1
        return self.arguments if queue == choices.Q0 else choices.NOTHING

    @cached_property
    def steps(self) -> st.SearchStrategy[list[Step | None]]:
        return self._steps_of(_MAKERS)

    @cached_property
    def steps_without_http(self) -> st.SearchStrategy[list[Step | None]]:
        return self._steps_of([(make, weight) for make, weight in _MAKERS if make not in _HTTP])

    def _steps_of(self, weights: list[tuple[Make | None, int]]) -> st.SearchStrategy[list[Step | None]]:
        publish = _publishing(self.properties, choices.OFTEN if self.is_routing else choices.SELDOM)
        instead: Mapping[Make, Make] = {_publish: publish, **self.instead}
        makers = [
            (instead.get(make, make) if make else None, weight * (self.more.get(make, 1) if make else 1))
            for make, weight in weights
        ]
        return st.lists(_steps(choices.weighted(*makers), self.ats), min_size=LIST_MIN, max_size=self.steps_max)


@st.composite
def _steps(draw: Draw, makers: st.SearchStrategy[Make | None], ats: st.SearchStrategy[At]) -> Step | None:
    """Draw a step; hypothesis replaces a needless one by None."""
    make = draw(makers)
    return None if make is None else make(draw, draw(ats))


_ROUTING = {_bind: 3, _unbind: 6, _declare_exchange: 3, _bind_exchange: 5, _unbind_exchange: 4, _delete_queue: 4}
_DELETING = {_delete_queue: 8, _declare_queue: 5, _bind: 3, _unbind: 2, _delete_exchange: 3}
# Steps with exchanges, of which many close their channel.
_PLAIN = dict.fromkeys((_bind, _unbind, _declare_exchange, _bind_exchange, _unbind_exchange, _delete_exchange), 0)
_COUNTING = {**_PLAIN, _http_counts: 25, _get: 2, _settle: 2, _tx_select: 30, _tx_commit: 15, _recover: 0}
_TRANSACTIONS = {**_PLAIN, _tx_select: 12, _tx_commit: 10, _publish: 5}
_PERMISSIONS = {_permissions: 10, _topic_permissions: 20, _limit: 6, _declare_exchange: 2, _declare_passively: 15}
_LENGTHS = _policies(choices.LENGTH_DEFINITIONS, choices.LENGTH_DEFINITIONS, is_operators=choices.HALF)
_CLEARED = _policies(choices.EXPIRING_DEFINITIONS, choices.EXPIRING_DEFINITIONS, is_cleared=choices.HALF)
_ALTERNATES = _policies(choices.ALTERNATES)
THEMES = choices.weighted(
    (Theme(), 10),
    # Messages that expire: with their queue, behind others, and behind others of higher priority.
    (Theme({_wait: 25}, arguments=choices.EXPIRING, properties=choices.EXPIRATIONS, steps_max=TIMED_MAX), 2),
    (Theme({**_PLAIN, _wait: 25, _publish: 2, _get: 2}, properties=choices.SOME_EXPIRE, steps_max=TIMED_MAX), 2),
    (
        Theme(
            {**_PLAIN, _wait: 20, _publish: 3, _get: 5},
            ats=choices.FEW_ATS,
            consumers=st.just(()),
            kind="classic",
            flags=choices.TRANSIENT,
            properties=choices.SOME_EXPIRE,
            steps_max=TIMED_MAX,
        ),
        2,
    ),
    (
        Theme(
            {**_PLAIN, _wait: 30, _policy: 12},
            instead={_policy: _LENGTHS},
            consumers=st.just(()),
            properties=choices.SOME_EXPIRE,
            needs_http=True,
            steps_max=TIMED_MAX,
        ),
        2,
    ),
    (Theme({_wait: 15}, properties=choices.EXPIRING_PRIORITIES, steps_max=TIMED_MAX), 1),
    (Theme({_wait: 30}, kind="quorum", properties=choices.EXPIRING_PRIORITIES, steps_max=TIMED_MAX), 2),
    # Limits, and queues that refuse.
    (Theme({_policy: 3, _settle: 2}, arguments=choices.SHORT_LIMITS), 3),
    (Theme(_TRANSACTIONS, ats=choices.FEW_ATS, consumers=st.just(()), kind="quorum", arguments=choices.FULL_SOON), 3),
    (Theme({_publish: 2, _settle: 2}, kind="classic", arguments=choices.REFUSING), 2),
    # The order of messages, and what comes back to a queue.
    (Theme({_recover: 2}, arguments=choices.PRIORITIZING, properties=choices.PRIORITIES), 2),
    (
        Theme(
            {**_PLAIN, _get: 4, _recover: 4, _publish: 3},
            ats=choices.FEW_ATS,
            consumers=choices.CONSUMERS_OF_A_CHANNEL,
            kind="quorum",
        ),
        2,
    ),
    (Theme({_tx_select: 5, _tx_commit: 5, _tx_rollback: 5, _recover: 2}), 1),
    # Dead letters of one hop and of several.
    (Theme({_settle: 3, _get: 2}, arguments=choices.DYING, properties=choices.COPIES), 5),
    (
        Theme(
            {_settle: 3, _get: 3, _publish: 2},
            queues=choices.THREE_QUEUES,
            arguments=choices.DYING_AT_ONCE,
            arguments_of_q1=choices.DYING_AGAIN,
        ),
        3,
    ),
    # Consumers, streams and counts.
    (Theme({_consume: 2, _cancel: 3, _end: 2, _close_channel: 2}, arguments=choices.SINGLE), 1),
    (Theme({_consume: 2, _cancel: 2}, kind="stream"), 1),
    (Theme({_http_counts: 25, _purge: 10, _settle: 2}, ats=choices.FEW_ATS, needs_http=True, steps_max=TIMED_MAX), 2),
    (Theme(_COUNTING, ats=choices.FEW_ATS, kind="classic", needs_http=True, steps_max=TIMED_MAX), 2),
    # Exchanges and bindings.
    (Theme({**_ROUTING, _delete_exchange: 3}, is_routing=True), 2),
    (Theme(_DELETING, is_routing=True, is_bound=True), 2),
    # Policies and permissions.
    (Theme({_policy: 10, _wait: 4}, needs_http=True, steps_max=TIMED_MAX), 1),
    (Theme({_policy: 15}, instead={_policy: _CLEARED}, needs_http=True), 2),
    (
        Theme(
            {_policy: 10, _publish: 4},
            instead={_policy: _LENGTHS},
            consumers=st.just(()),
            kind="quorum",
            arguments=choices.SOME_DEAD_LETTERS,
            needs_http=True,
        ),
        3,
    ),
    (Theme({_policy: 8}, instead={_policy: _ALTERNATES}, is_routing=True, is_bound=True, needs_http=True), 1),
    (Theme(_PERMISSIONS, ats=choices.ATS_OF_USER, is_routing=True, needs_http=True), 3),
)


@st.composite
def programs(draw: Draw) -> Program:
    """Draw a program, which begins with queues and consumers."""
    theme = draw(THEMES)
    queues = draw(theme.queues)
    begun = [_declared(draw, At(), queue, theme) for queue in queues]
    if theme.is_bound:
        begun += _bound(draw, At(), queues)
    for at in draw(theme.consumers):
        begun += [_qos(draw, at), _consume(draw, at)]
    # A broker whose HTTP API is not asked can be compared by those without requests.
    is_without_http = not theme.needs_http and draw(choices.OFTEN)
    drawn = draw(theme.steps_without_http if is_without_http else theme.steps)
    steps = [*begun, *(step for step in drawn if step is not None)]
    if any(isinstance(step, Http) and "max-length" in str(step.body) for step in steps):
        return tuple(_without_delayed_retries(step) for step in steps)
    return tuple(steps)


def _without_delayed_retries(step: Step) -> Step:
    """Leave delayed retries out of a declaration."""
    if isinstance(step, Call) and choices.DELAYED_RETRY in step.fields.get("arguments", {}):
        arguments = {
            name: value for name, value in step.fields["arguments"].items() if not name.startswith("x-delayed-retry")
        }
        return Call(step.at, step.method, {**step.fields, "arguments": arguments})
    return step


def _declared(draw: Draw, at: At, queue: str, theme: Theme) -> Step:
    """Return the declaration of a queue at the beginning."""
    is_first = queue == choices.Q0
    kind = theme.kind if is_first and theme.kind else draw(choices.KINDS)
    arguments = draw(theme.arguments_of(queue))
    flags = theme.flags if is_first else choices.QUEUE_FLAGS
    return _declaration(draw, at, queue, kind, choices.permitted(arguments, kind), flags)


def _bound(draw: Draw, at: At, queues: tuple[Name, ...]) -> list[Step]:
    """Return the declarations of both exchanges, each with a binding of a queue."""
    kinds, flags = draw(choices.BOUND_KINDS), draw(choices.EXCHANGE_FLAGS)
    exchanges = [
        Call(at, Exchange.Declare, {"exchange": exchange, "exchange_type": kind, **flags})
        for exchange, kind in zip((choices.X1, choices.X0), kinds, strict=True)
    ]
    ends = zip((choices.X1, choices.X0), (queues[-1], queues[0]), strict=True)
    return [
        *exchanges,
        *(Call(at, Queue.Bind, {"exchange": x, "queue": q, "routing_key": draw(choices.KEYS)}) for x, q in ends),
    ]
