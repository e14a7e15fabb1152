"""The first look at a broker: its greeting, its limits, and what it does not offer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pamqp import commands
from pamqp.commands import Basic, Exchange, Queue, Tx

from amqp_broker.conformance.lab import Broker, Lab
from amqp_broker.conformance.received import END, Received, Silent, Stopped
from amqp_broker.conformance.records import ORACLES
from amqp_broker.conformance.scenario_channel import Channel
from amqp_broker.conformance.terms import DIRECT_REPLY_TO, METHOD_FEATURES, REPLY_TO, Terms
from amqp_broker.conformance.wire import Field

# The capability of server-properties that announces a feature.
CAPABILITIES = {
    "bindings between exchanges": "exchange_exchange_bindings",
    "publisher confirms": "publisher_confirms",
    "basic.nack": "basic.nack",
}
QUEUE_TYPES = ("quorum", "stream")
# With the first recorded version that knows the type.
EXCHANGE_TYPES = {
    **dict.fromkeys(("headers", "x-consistent-hash", "x-random", "x-recent-history", "x-modulus-hash"), "3.10"),
    "x-local-random": "4.0",
}
CLOSES = (commands.Channel.Close, commands.Connection.Close)


class NoBroker(Exception):
    """The broker cannot be asked; the text is a sentence. `is_refusal` if it refuses the login."""

    def __init__(self, sentence: str, is_refusal: bool = False) -> None:
        super().__init__(sentence)
        self.is_refusal = is_refusal


@dataclass(frozen=True)
class Greeting:
    """The properties and limits that a broker names before and after the login."""

    product: str
    version: str
    capabilities: frozenset[str]
    channel_max: int
    frame_max: int


def greeting_of(broker: Broker, terms: Terms) -> Greeting:
    """Log in and open the vhost. Raise NoBroker."""
    lab = Lab(broker, terms)
    try:
        return _greeted(lab, terms)
    except Silent:
        raise NoBroker("the server does not answer; it may not speak AMQP 0-9-1") from None
    except Stopped as why:
        raise NoBroker(str(why)) from None
    finally:
        lab.leave()


def _greeted(lab: Lab, terms: Terms) -> Greeting:
    connection = lab.dial()
    start = connection.send_header()
    if start.method is not commands.Connection.Start:
        said = "closes the connection at once" if start is END else f"answers with {start.note or start.method}"
        raise NoBroker(f"the server does not speak AMQP 0-9-1: it {said}")
    properties = dict(start["server_properties"])
    tune = connection.start_ok()
    if tune.method is not commands.Connection.Tune:
        raise NoBroker(f"the broker refuses the login of '{terms.user}': {_reason(tune)}", is_refusal=True)
    connection.tune_ok()
    opened = connection.open()
    if opened.method is not commands.Connection.OpenOk:
        raise NoBroker(f"the broker refuses the vhost '{terms.vhost}': {_reason(opened)}", is_refusal=True)
    capabilities = properties.get("capabilities", Field("F", []))
    return Greeting(
        str(_text(properties, "product")),
        str(_text(properties, "version")),
        frozenset(name for name, field in capabilities.value if field.value is True),
        connection.offer["channel_max"],
        connection.offer["frame_max"],
    )


def _text(properties: dict[str, Field], name: str) -> Any:
    return properties[name].value if name in properties else ""


def _reason(received: Received) -> str:
    return str(received.fields.get("reply_text") or "it closes the connection")


def lacking(broker: Broker, terms: Terms, greeting: Greeting, oracle: str) -> dict[str, str]:
    """Return the features that RabbitMQ has and this broker lacks, each with the reason to skip scenarios."""
    lacks = {
        feature: f"the broker does not announce {capability}"
        for feature, capability in CAPABILITIES.items()
        if capability not in greeting.capabilities
    }
    lab = Lab(broker, terms)
    try:
        # A broker that knows no types may accept any.
        takes_any = _is_offered(lab, _queue_of_type(lab, "any"))
        for kind in QUEUE_TYPES:
            if takes_any:
                lacks[f"queues of type {kind}"] = "the broker ignores the type of a queue"
        for feature, probe in _probes(lab, oracle):
            if feature not in lacks and not _is_offered(lab, probe):
                lacks[feature] = f"the broker has no {feature}"
    finally:
        lab.leave()
    return lacks


Probe = Callable[[Channel], Received]


def _probes(lab: Lab, oracle: str) -> Iterator[tuple[str, Probe]]:
    """Yield features, each with the method that only brokers accept which have it."""
    for kind in QUEUE_TYPES:
        yield f"queues of type {kind}", _queue_of_type(lab, kind)
    for kind, since in EXCHANGE_TYPES.items():
        if oracle in ORACLES[ORACLES.index(since) :]:
            yield f"exchanges of type {kind}", _asks(Exchange.Declare, exchange=lab.name(kind), exchange_type=kind)
    yield METHOD_FEATURES[Tx.Select], _asks(Tx.Select)
    yield DIRECT_REPLY_TO, _asks(Basic.Consume, queue=REPLY_TO, no_ack=True)


def _queue_of_type(lab: Lab, kind: str) -> Probe:
    return _asks(Queue.Declare, queue=lab.name(kind), durable=True, arguments={"x-queue-type": kind})


def _asks(method: Any, **fields: Any) -> Probe:
    return lambda channel: channel.call(method, **fields)


def _is_offered(lab: Lab, probe: Probe) -> bool:
    """Return whether the broker accepts a method, on a connection that it may close."""
    try:
        answer = probe(lab.channel())
    except Stopped:
        return False
    return answer is not END and answer.method not in CLOSES
