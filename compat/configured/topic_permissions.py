"""A user with topic permissions: routing keys that may be bound and published."""

from __future__ import annotations

from typing import Any

from pamqp.commands import Basic, Exchange, Queue, Tx

from amqp_broker.cli.shared.http_api import Answered
from amqp_broker.conformance.lab import Lab
from amqp_broker.conformance.scenario_channel import Channel
from compat.brokers import AmqpBroker
from compat.configured.area import Area
from compat.configured.registry import configured_scenario
from compat.definitions.suite import api_of
from compat.oracles.rabbitmq import RabbitMQ

AREA = Area("topic_permissions")


def _ask(lab: Lab, method: str, path: str, body: dict[str, Any]) -> Answered:
    assert isinstance(lab.broker, RabbitMQ | AmqpBroker)
    return api_of(lab.broker).ask(method, f"/api/{path}", body)


def _topics(lab: Lab, write: str, read: str) -> tuple[str, str, Channel]:
    """Return a topic exchange with these permissions, a queue, and a channel."""
    q, x = lab.queue(durable=True), lab.name("x")
    channel = lab.channel()
    channel.call(Exchange.Declare, exchange=x, exchange_type="topic", durable=True)
    lab.transcript.record(f"lab> permits {write} to be written, and {read} to be read")
    permission = {"exchange": x, "write": write, "read": read}
    assert _ask(lab, "PUT", "topic-permissions/%2F/guest", permission).status < 300
    return q, x, channel


@configured_scenario
def a_routing_key_that_may_not_be_bound(lab: Lab) -> None:
    q, x, channel = _topics(lab, ".*", "^k$")
    channel.call(Queue.Bind, queue=q, exchange=x, routing_key="k")
    channel.call(Queue.Bind, queue=q, exchange=x, routing_key="k.l")


@configured_scenario
def a_routing_key_that_may_not_be_unbound(lab: Lab) -> None:
    q, x, channel = _topics(lab, ".*", "^k$")
    channel.call(Queue.Unbind, queue=q, exchange=x, routing_key="k")
    channel.call(Queue.Unbind, queue=q, exchange=x, routing_key="k.l")


@configured_scenario
def a_routing_key_that_may_not_be_bound_to_an_exchange(lab: Lab) -> None:
    _, x, channel = _topics(lab, ".*", "^k$")
    channel.call(Exchange.Bind, destination="amq.fanout", source=x, routing_key="k")
    channel.call(Exchange.Unbind, destination="amq.fanout", source=x, routing_key="k")
    channel.call(Exchange.Bind, destination="amq.fanout", source=x, routing_key="k.l")


@configured_scenario
def a_routing_key_that_may_not_be_unbound_from_an_exchange(lab: Lab) -> None:
    _, x, channel = _topics(lab, ".*", "^k$")
    channel.call(Exchange.Unbind, destination="amq.fanout", source=x, routing_key="k.l")


@configured_scenario
def bindings_to_a_topic_exchange_from_another_type(lab: Lab) -> None:
    _, x, channel = _topics(lab, "^k$", "^k$")
    channel.call(Exchange.Bind, destination=x, source="amq.direct", routing_key="other")
    channel.publish(b"1", exchange="amq.direct", routing_key="other")
    channel.sync()


@configured_scenario
def a_routing_key_that_may_not_be_published(lab: Lab) -> None:
    q, x, channel = _topics(lab, "^k$", ".*")
    channel.call(Queue.Bind, queue=q, exchange=x, routing_key="#")
    channel.publish(b"1", exchange=x, routing_key="k")
    channel.call(Basic.Get, queue=q, no_ack=True)
    channel.publish(b"2", exchange=x, routing_key="k.l")
    channel.expect()


@configured_scenario
def keys_of_cc_and_bcc_that_may_not_be_published(lab: Lab) -> None:
    q, x, channel = _topics(lab, "^k$", ".*")
    channel.call(Queue.Bind, queue=q, exchange=x, routing_key="#")
    channel.publish(b"1", exchange=x, routing_key="k", headers={"CC": ["k.l"]})
    channel.call(Basic.Get, queue=q, no_ack=True)
    channel.publish(b"2", exchange=x, routing_key="k", headers={"BCC": ["k.l"]})
    channel.call(Basic.Get, queue=q, no_ack=True)


@configured_scenario
def a_routing_key_that_may_not_be_published_and_another_fault(lab: Lab) -> None:
    _, x, first = _topics(lab, "^k$", ".*")
    first.publish(b"1", exchange=x, routing_key="k.l", expiration="a")
    first.expect()
    faults: tuple[dict[str, Any], ...] = (
        {"headers": {"CC": "k"}},
        {"headers": {"CC": ["k.m"]}},
        {"user_id": "other"},
        {"mandatory": True},
    )
    for fault in faults:
        channel = first.connection.channel()
        channel.publish(b"2", exchange=x, routing_key="k.l", **fault)
        channel.expect()


@configured_scenario
def a_routing_key_that_may_not_be_published_in_a_transaction(lab: Lab) -> None:
    _, x, channel = _topics(lab, "^k$", ".*")
    channel.call(Tx.Select)
    channel.publish(b"1", exchange=x, routing_key="k.l")
    channel.expect()


@configured_scenario
def keys_that_are_not_permitted_over_http(lab: Lab) -> None:
    q, x, _ = _topics(lab, "^k$", "^k$")
    message = {"properties": {}, "routing_key": "k.l", "payload": "1", "payload_encoding": "string"}
    for path, body in (
        (f"exchanges/%2F/{x}/publish", message),
        (f"bindings/%2F/e/{x}/q/{q}", {"routing_key": "k.l", "arguments": {}}),
    ):
        answer = _ask(lab, "POST", path, body)
        lab.transcript.record(f"lab< {answer.status} {answer.value}")
