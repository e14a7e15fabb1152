"""Default types of queues: that of the node is quorum, some vhosts have others.

RabbitMQ 4.1 and later note the default of the node in each vhost that they create, so each scenario creates its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pamqp.commands import Queue

from amqp_broker.conformance.lab import Lab
from amqp_broker.conformance.scenario_channel import Channel
from compat.brokers import AmqpBroker
from compat.configured.area import Area
from compat.configured.evaluator import evaluate
from compat.configured.registry import configured_scenario
from compat.definitions.suite import api_of
from compat.oracles.rabbitmq import RabbitMQ

AREA = Area("default_queue_types", ("default_queue_type = quorum",), since=(4, 0))
QUORUM = {"x-queue-type": "quorum"}


def _ask(lab: Lab, method: str, target: str, body: dict[str, Any] | None = None) -> Any:
    """Return the value of an answer of the HTTP API."""
    assert isinstance(lab.broker, (AmqpBroker, RabbitMQ))
    answer = api_of(lab.broker).ask(method, target, body)
    assert answer.is_ok
    return answer.value


def _vhost(lab: Lab, queue_type: str = "") -> str:
    """Return a new vhost with this default type. Its creator has all permissions."""
    vhost = lab.name("vhost")
    _ask(lab, "PUT", f"/api/vhosts/{vhost}", {"default_queue_type": queue_type} if queue_type else {})
    return vhost


def _in_vhost(lab: Lab, queue_type: str = "") -> Channel:
    """Return a channel in a new vhost with this default type."""
    return lab.connect(vhost=_vhost(lab, queue_type)).channel()


@contextmanager
def _other_default(lab: Lab, queue_type: str) -> Iterator[None]:
    """Change the default of the node for a while."""
    _set_default(lab, queue_type)
    try:
        yield
    finally:
        _set_default(lab, "quorum")


def _set_default(lab: Lab, queue_type: str) -> None:
    lab.transcript.record(f"lab> sets the default of the node to {queue_type}")
    if isinstance(lab.broker, AmqpBroker):
        change = f"[{{rabbit, [{{default_queue_type, rabbit_{queue_type}_queue}}]}}]."
        _ask(lab, "PUT", "/_broker/environment", {"value": change})
        return
    assert isinstance(lab.broker, RabbitMQ)
    evaluate(lab.broker, f"application:set_env(rabbit, default_queue_type, rabbit_{queue_type}_queue).")


def _shows_vhost(lab: Lab, vhost: str) -> None:
    """Record the metadata of a vhost, and those of its export."""
    row = _ask(lab, "GET", f"/api/vhosts/{vhost}")
    [exported] = (one for one in _ask(lab, "GET", "/api/definitions")["vhosts"] if one["name"] == vhost)
    lab.transcript.record(f"lab> sees {row['default_queue_type']}, {row['metadata']}, exports {exported['metadata']}")


def _shows_its_type(channel: Channel, q: str) -> None:
    """Declare a queue again with a type that no queue has, so that the refusal names its type."""
    channel.call(Queue.Declare, queue=q, durable=True, arguments={"x-queue-type": "stream", "x-max-age": "1D"})


@configured_scenario
def a_queue_without_a_type_is_a_quorum_queue(lab: Lab) -> None:
    channel, q = _in_vhost(lab), lab.name("q")
    channel.declare(q, durable=True)
    channel.publish(b"1", routing_key=q)
    channel.sync(q)
    channel.get(q)
    channel.reject(1)
    channel.sync(q)
    channel.get(q)
    channel.ack(2)
    channel.sync(q)
    channel.declare(q, durable=True, arguments=QUORUM)
    channel.declare(q, durable=True)
    channel.call(Queue.Declare, queue=q, durable=True, arguments={"x-queue-type": "classic"})


@configured_scenario
def a_queue_may_have_another_type_than_the_default(lab: Lab) -> None:
    channel, q = _in_vhost(lab), lab.name("q")
    channel.declare(q, durable=True, arguments={"x-queue-type": "classic"})
    channel.declare(q, passive=True)
    channel.call(Queue.Declare, queue=q, durable=True)


@configured_scenario
def an_exclusive_queue_is_classic_whatever_the_default_is(lab: Lab) -> None:
    channel, q = _in_vhost(lab), lab.name("q")
    channel.declare(q, exclusive=True)
    channel.call(Queue.Declare, queue=q, exclusive=True, arguments=QUORUM)


@configured_scenario
def a_transient_exclusive_queue_with_a_priority_is_classic(lab: Lab) -> None:
    channel, q = _in_vhost(lab), lab.name("q")
    channel.declare(q, exclusive=True, arguments={"x-max-priority": 5})


@configured_scenario
def an_argument_of_classic_queues_is_refused_by_the_default_type(lab: Lab) -> None:
    _in_vhost(lab).call(Queue.Declare, queue=lab.name("q"), durable=True, arguments={"x-max-priority": 5})


@configured_scenario
def an_auto_delete_queue_cannot_have_the_default_type(lab: Lab) -> None:
    channel, q = _in_vhost(lab), lab.name("q")
    channel.call(Queue.Declare, queue=q, durable=True, auto_delete=True)
    _shows_its_type(channel, q)


@configured_scenario
def a_server_named_queue_cannot_have_the_default_type(lab: Lab) -> None:
    _in_vhost(lab).call(Queue.Declare, queue="", durable=True)


@configured_scenario
def a_server_named_exclusive_queue_is_classic(lab: Lab) -> None:
    channel = _in_vhost(lab)
    q = channel.declare(exclusive=True)
    channel.echo(q, b"1")


@configured_scenario
def a_new_vhost_has_the_default_of_the_node(lab: Lab) -> None:
    channel, q = _in_vhost(lab), lab.name("q")
    channel.declare(q, durable=True)
    _shows_its_type(channel, q)


@configured_scenario
def the_default_of_a_vhost_precedes_that_of_the_node(lab: Lab) -> None:
    channel, q = _in_vhost(lab, "classic"), lab.name("q")
    channel.declare(q, durable=True)
    _shows_its_type(channel, q)


@configured_scenario
def a_vhost_may_have_streams_by_default(lab: Lab) -> None:
    channel, q = _in_vhost(lab, "stream"), lab.name("q")
    channel.declare(q, durable=True, arguments={"x-max-age": "1h"})
    channel.get(q)


@configured_scenario
def a_dead_letter_from_the_default_type_has_its_count(lab: Lab) -> None:
    channel, q, dead = _in_vhost(lab), lab.name("q"), lab.name("dead")
    channel.declare(dead, durable=True)
    channel.declare(q, durable=True, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
    consumer = channel.connection.channel()
    consumer.consume(dead)
    channel.publish(b"1", routing_key=q)
    channel.sync(q)
    channel.get(q)
    channel.reject(1, requeue=False)
    consumer.deliveries(1)


@configured_scenario
def a_vhost_and_another_default_of_the_node_later(lab: Lab) -> None:
    vhost = _vhost(lab)
    channel, q = lab.connect(vhost=vhost).channel(), lab.name("q")
    with _other_default(lab, "classic"):
        _shows_vhost(lab, vhost)
        channel.declare(q, durable=True)
        _shows_its_type(channel, q)


@configured_scenario
def a_vhost_with_its_own_default_and_another_one_of_the_node_later(lab: Lab) -> None:
    vhost = _vhost(lab, "stream")
    channel, q = lab.connect(vhost=vhost).channel(), lab.name("q")
    with _other_default(lab, "classic"):
        _shows_vhost(lab, vhost)
        channel.declare(q, durable=True, arguments={"x-max-age": "1h"})


@configured_scenario
def a_changed_vhost_has_the_default_that_the_node_has_then(lab: Lab) -> None:
    vhost = _vhost(lab, "stream")
    channel, q = lab.connect(vhost=vhost).channel(), lab.name("q")
    with _other_default(lab, "classic"):
        _ask(lab, "PUT", f"/api/vhosts/{vhost}", {"description": "changed"})
        _shows_vhost(lab, vhost)
    _shows_vhost(lab, vhost)
    channel.declare(q, durable=True)
    _shows_its_type(channel, q)


@configured_scenario
def an_imported_vhost_has_the_type_of_its_metadata_alone(lab: Lab) -> None:
    plain, own, beside = lab.name("plain"), lab.name("own"), lab.name("beside")
    metadata = {"description": "", "tags": [], "default_queue_type": "classic"}
    vhosts = [
        {"name": plain},
        {"name": own, "metadata": metadata},
        {"name": beside, "default_queue_type": "classic"},
    ]
    _ask(lab, "POST", "/api/definitions", {"vhosts": vhosts})
    for vhost in (plain, own, beside):
        _shows_vhost(lab, vhost)
    with _other_default(lab, "classic"):
        _shows_vhost(lab, plain)
