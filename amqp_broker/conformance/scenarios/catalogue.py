"""The catalogue: each known argument of queues, exchanges and consumers, with values of all types.

A scenario is one argument of one type of object. A line of its transcript is a declaration: the value (or the change,
if a queue is declared again), and `ok` or the refusal, in which ARG stands for "invalid arg 'NAME' for OBJECT". All
declarations of a scenario are sent at once, each on its own channel. If one of them crashes the connection, those
without an answer are sent again, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pamqp import commands
from pamqp.commands import Basic, Exchange, Queue

from amqp_broker.conformance import wire
from amqp_broker.conformance.lab import SCENARIOS, Lab, Scenario
from amqp_broker.conformance.received import END, Received, Stopped
from amqp_broker.conformance.scenario_connection import Connection
from amqp_broker.conformance.transcript import show
from amqp_broker.conformance.wire import Field, Method

Step = tuple[Method, dict[str, Any]]

# Values of every type, for every argument.
ANY: tuple[Any, ...] = (
    *(-1, 0, 1, 3_000_000_001, 315_360_000_001, 2**63 - 1, Field("B", 5), Field("T", 5)),
    *(1.0, Field("D", (1, 50)), True, False, None, "", "abc", "5", Field("x", b"abc"), {"a": 1}, []),
    *(*(Field(tag, 5) for tag in "bsui"), Field("f", 1.0)),
)
# Fewer, for exchanges.
FEW: tuple[Any, ...] = (-1, 0, 5, 1.0, True, None, "", "abc", Field("x", b"abc"), {}, [], "amq.direct")
# And those that an argument means something by.
OWN: dict[str, tuple[Any, ...]] = {
    "x-max-priority": (255, 256),
    "x-stream-filter-size-bytes": (16, 255, 256),
    "x-dead-letter-strategy": ("at-most-once", "at-least-once"),
    "x-overflow": ("drop-head", "reject-publish", "reject-publish-dlx"),
    "x-queue-mode": ("default", "lazy"),
    "x-queue-type": ("classic", "quorum", "stream", "Quorum", "rabbit_quorum_queue"),
    "x-queue-leader-locator": ("client-local", "balanced", "random", "least-leaders", "min-masters"),
    "x-queue-master-locator": ("client-local", "balanced", "random", "least-leaders", "min-masters"),
    "x-queue-version": (2, 3),
    "x-max-age": ("1D", "1Y", "2M", "3h", "4m", "5s", "0s", "-1s", "1.5h", "1d", "D", "1 D", "1DD", "24h"),
    "x-delayed-retry-type": ("disabled", "all", "failed", "returned"),
    "x-ha-policy": ("all", "nodes"),
    "hash-property": ("message_id", "correlation_id", "timestamp", "app_id"),
    "x-stream-offset": ("first", "last", "next", "First", "1h", "1.5h", Field("x", b"first")),
    "x-stream-filter": (["a", "b"], ["a", 1]),
}
# Arguments that go with another.
WITH: dict[str, dict[str, Any]] = {
    "x-dead-letter-routing-key": {"x-dead-letter-exchange": "x"},
    "x-dead-letter-strategy": {"x-dead-letter-exchange": "x", "x-overflow": "reject-publish"},
    "x-delayed-retry-min": {"x-delayed-retry-type": "all"},
    "x-delayed-retry-max": {"x-delayed-retry-type": "all", "x-delayed-retry-min": 10},
}
# A value that the type of queue accepts if it has the argument, and another one.
TWO_VALUES: dict[str, tuple[Any, Any]] = {
    "x-expires": (60000, 60001),
    "x-message-ttl": (60000, 60001),
    "x-dead-letter-exchange": ("x", "y"),
    "x-dead-letter-routing-key": ("x", "y"),
    "x-dead-letter-strategy": ("at-most-once", "at-least-once"),
    "x-max-length": (10, 11),
    "x-max-length-bytes": (1000, 1001),
    "x-max-in-memory-length": (10, 11),
    "x-max-in-memory-bytes": (1000, 1001),
    "x-max-priority": (3, 4),
    "x-delivery-limit": (5, -1),
    "x-consumer-timeout": (60000, 60001),
    "x-consumer-disconnected-timeout": (60000, 60001),
    "x-overflow": ("drop-head", "reject-publish"),
    "x-queue-mode": ("default", "lazy"),
    "x-queue-version": (2, 1),
    "x-single-active-consumer": (True, False),
    "x-queue-type": ("classic", "quorum"),
    "x-quorum-initial-group-size": (1, 3),
    "x-quorum-target-group-size": (1, 3),
    "x-queue-leader-locator": ("client-local", "balanced"),
    "x-queue-master-locator": ("client-local", "min-masters"),
    "x-max-age": ("1D", "24h"),
    "x-stream-max-segment-size-bytes": (1_000_000, 2_000_000),
    "x-stream-filter-size-bytes": (16, 32),
    "x-initial-cluster-size": (1, 3),
    "x-delayed-retry-type": ("all", "failed"),
    "x-delayed-retry-min": (1000, 1001),
    "x-delayed-retry-max": (1000, 1001),
    "x-cancel-on-ha-failover": (True, False),
    "x-ha-policy": ("all", "nodes"),
    "x-modulus": (1, 2),
    "x-unknown": ("a", "b"),
    "unknown": (1, 2),
}
QUEUE_TYPES = ("classic", "quorum", "stream")
EXCHANGE_TYPES = (
    *("direct", "fanout", "topic", "headers", "x-consistent-hash", "x-random", "x-local-random"),
    *("x-recent-history", "x-modulus-hash"),
)
EXCHANGE_ARGUMENTS = (
    "alternate-exchange",
    "hash-header",
    "hash-property",
    "x-recent-history-length",
    "shards-per-node",
)
CONSUMER_ARGUMENTS = (
    *("x-priority", "x-stream-offset", "x-stream-filter", "x-stream-match-unfiltered", "x-consumer-timeout"),
    *("x-cancel-on-ha-failover", "x-unknown"),
)
CLOSES = (commands.Channel.Close, commands.Connection.Close)


@dataclass(frozen=True)
class Declaration:
    """Methods on a new channel; the first refusal, or the answer to the last method, is the answer."""

    label: str
    steps: tuple[Step, ...]
    # The object's name in errors, and the methods that delete it.
    resource: str
    delete: tuple[Step, ...] = field(default=())


# Returns the declarations of a scenario, by the type of the object and the argument.
Family = Callable[[str, str, Lab], Iterator[Declaration]]


def _queue(name: str, arguments: dict[str, Any]) -> Step:
    return Queue.Declare, {"queue": name, "durable": True, "arguments": arguments}


def _typed(queue_type: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments if "x-queue-type" in arguments else {"x-queue-type": queue_type, **arguments}


def _values(argument: str, common: tuple[Any, ...] = ANY) -> tuple[Any, ...]:
    # RabbitMQ 3.10 is silent about a master locator of another type.
    return (("abc",) if argument == "x-queue-master-locator" else common) + OWN.get(argument, ())


def _label(value: Any) -> str:
    return show(wire.as_field(value)).replace(", ", ",").replace(": ", ":").replace(" ", "_")


def _declared_queues(queue_type: str, argument: str, lab: Lab) -> Iterator[Declaration]:
    for number, value in enumerate(_values(argument)):
        name = lab.name(str(number))
        arguments = _typed(queue_type, {**WITH.get(argument, {}), argument: value})
        yield _declared(lab, _label(value), name, arguments)
    if argument in WITH:
        value = TWO_VALUES[argument][0]
        name = lab.name("alone")
        yield _declared(lab, f"alone:{_label(value)}", name, _typed(queue_type, {argument: value}))


def _declared(lab: Lab, label: str, name: str, *arguments: dict[str, Any]) -> Declaration:
    steps = tuple(_queue(name, each) for each in arguments)
    return Declaration(
        label, steps, f"queue '{name}' in vhost '{lab.terms.vhost}'", ((Queue.Delete, {"queue": name, "nowait": True}),)
    )


def _declared_again(queue_type: str, argument: str, lab: Lab) -> Iterator[Declaration]:
    first, second = TWO_VALUES[argument]
    others = WITH.get(argument, {})
    without = _typed(queue_type, others)
    pairs = {
        "missing": ({argument: first}, {}),
        "added": ({}, {argument: first}),
        "changed": ({argument: first}, {argument: second}),
        "same": ({argument: first}, {argument: first}),
        "text": ({argument: first}, {argument: "text"}),
        "integer": ({argument: first}, {argument: 7}),
    }
    for label, (one, other) in pairs.items():
        yield _declared(lab, f"again:{label}", lab.name(label), {**without, **one}, {**without, **other})


def _declared_exchanges(exchange_type: str, argument: str, lab: Lab) -> Iterator[Declaration]:
    for number, value in enumerate(_values(argument, FEW)):
        name = lab.name(str(number))
        fields = {"exchange": name, "exchange_type": exchange_type, "durable": True, "arguments": {argument: value}}
        delete = ((Exchange.Delete, {"exchange": name, "nowait": True}),)
        yield Declaration(
            _label(value), ((Exchange.Declare, fields),), f"exchange '{name}' in vhost '{lab.terms.vhost}'", delete
        )


def _consumers(queue_type: str, argument: str, lab: Lab) -> Iterator[Declaration]:
    queue = lab.queue("q", durable=True, arguments={"x-queue-type": queue_type})
    for value in _values(argument):
        steps: tuple[Step, ...] = (
            (Basic.Qos, {"prefetch_count": 1}),
            (Basic.Consume, {"queue": queue, "consumer_tag": "c", "arguments": {argument: value}}),
        )
        yield Declaration(_label(value), steps, f"queue '{queue}' in vhost '{lab.terms.vhost}'")


def _record(family: Family, kind: str, argument: str, lab: Lab) -> None:
    for declaration, answer in _answers(lab, [*family(kind, argument, lab)]):
        text = _shown(answer).replace(f"invalid arg '{argument}' for {declaration.resource}", "ARG")
        lab.transcript.record(f"{declaration.label} {text.replace(declaration.resource, 'OBJECT')}")


def _answers(lab: Lab, declarations: list[Declaration]) -> Iterator[tuple[Declaration, Received]]:
    """Yield each declaration with its answer."""
    connection = lab.connect()
    answers = _sent(connection, declarations)
    for declaration, answer in zip(declarations, answers, strict=True):
        if answer is not END and answer.method is not commands.Connection.Close:
            yield declaration, answer
        else:
            yield declaration, _sent(lab.connect(), [declaration])[0]


def _sent(connection: Connection, declarations: list[Declaration]) -> list[Received]:
    """Send the declarations, each on its channel, and return their answers; END where none has come.

    Raise Skipped if the broker lacks a feature.
    """
    for method, fields in (step for each in declarations for step in each.steps):
        connection.terms.check(method, fields)
    numbered = dict(enumerate(declarations, 1))
    for number in numbered:
        connection.use_channel(number)
    opened = {number: ((commands.Channel.Open, {}), *each.steps) for number, each in numbered.items()}
    connection.write(b"".join(_frame(number, step) for number, steps in opened.items() for step in steps))
    answers = [_answer(connection, number, len(each.steps)) for number, each in numbered.items()]
    _delete(connection, declarations)
    return answers


def _delete(connection: Connection, declarations: list[Declaration]) -> None:
    """Delete what was declared, and leave nothing on the connection that `finish` would record."""
    connection.channels = {0: connection.control}
    if connection.control.inbox or connection.is_ended:
        connection.control.inbox.clear()
        connection.hang_up()
        return
    channel = connection.channel(len(declarations) + 1)
    connection.write(b"".join(_frame(channel.number, step) for each in declarations for step in each.delete))
    channel.sync()


def _frame(number: int, step: Step) -> bytes:
    return wire.frame(wire.METHOD, number, wire.method_payload(*step))


def _answer(connection: Connection, number: int, steps: int) -> Received:
    """Return a close, the answer to the last step, or END."""
    answered = 0
    while True:
        received = _received(connection, number)
        answered += received.method is not commands.Channel.OpenOk
        if answered == steps or received is END or received.method in CLOSES:
            return received


def _received(connection: Connection, number: int) -> Received:
    inbox, control = connection.channels[number].inbox, connection.control.inbox
    while not inbox and not connection.is_ended:
        if control:
            return control[0]
        connection.read_some()
    return inbox.popleft() if inbox else END


def _shown(answer: Received) -> str:
    if answer.method is None:
        raise Stopped("no answer")
    if answer.method not in CLOSES:
        return "ok"
    closes = "connection " if answer.method is commands.Connection.Close else ""
    text = answer["reply_text"].replace("\n", "\\n")
    return f"{closes}{answer['reply_code']} {text}"


def _register() -> None:
    families = (
        ("queue", _declared_queues, QUEUE_TYPES, tuple(TWO_VALUES)),
        ("queue again", _declared_again, QUEUE_TYPES, tuple(TWO_VALUES)),
        ("exchange", _declared_exchanges, EXCHANGE_TYPES, EXCHANGE_ARGUMENTS),
        ("consumer", _consumers, QUEUE_TYPES, CONSUMER_ARGUMENTS),
    )
    for noun, family, kinds, arguments in families:
        for kind in kinds:
            for argument in arguments:
                name = f"{kind} {noun}: {argument}"
                SCENARIOS[name] = Scenario(name, "catalogue", partial(_record, family, kind, argument))


_register()
