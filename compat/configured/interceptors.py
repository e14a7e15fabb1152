"""Interceptors of messages: the broker notes when and where a message was published."""

from __future__ import annotations

from typing import Any

from pamqp.commands import Basic, Tx

from amqp_broker.conformance.lab import Lab
from compat.configured.area import Area
from compat.configured.registry import configured_scenario

AREA = Area(
    "interceptors",
    (
        "message_interceptors.incoming.set_header_timestamp.overwrite = false",
        "message_interceptors.incoming.set_header_routing_node.overwrite = true",
    ),
    since=(4, 0),
)


@configured_scenario
def a_message_gets_its_time_and_node(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    channel.echo(q, b"1")


@configured_scenario
def headers_and_properties_stay_beside_the_time(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    channel.echo(q, b"1", headers={"a": 1, "z": "x"}, message_id="m", content_type="text/plain", delivery_mode=2)


@configured_scenario
def a_time_that_the_publisher_has_set_stays(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    channel.echo(q, b"1", headers={"timestamp_in_ms": 5})
    channel.echo(q, b"2", timestamp=7)
    channel.echo(q, b"3", timestamp=7, headers={"timestamp_in_ms": 5})


@configured_scenario
def a_node_that_the_publisher_has_set_is_replaced(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    channel.echo(q, b"1", headers={"x-routed-by": "me"})


@configured_scenario
def a_dead_letter_keeps_the_time_of_its_publish(lab: Lab) -> None:
    channel, dead = lab.channel(), lab.queue("dead")
    q = lab.queue(arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
    channel.publish(b"1", routing_key=q)
    channel.sync(q)
    channel.get(q)
    channel.reject(1, requeue=False)
    channel.sync(q, dead)
    channel.drain(dead)


@configured_scenario
def an_unroutable_message_is_returned_with_its_time(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"1", routing_key=lab.name("missing"), mandatory=True)
    channel.sync()


@configured_scenario
def a_message_in_a_transaction_gets_its_time(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    channel.call(Tx.Select)
    channel.publish(b"1", routing_key=q)
    channel.call(Tx.Commit)
    channel.sync(q)
    channel.drain(q)


@configured_scenario
def a_headers_exchange_does_not_see_the_node(lab: Lab) -> None:
    channel, q, x = lab.channel(), lab.queue(), lab.name("x")
    channel.exchange(x, "headers")
    channel.bind(q, x, arguments={"x-match": "any-with-x", "x-routed-by": "me"})
    channel.publish(b"1", exchange=x, headers={"x-routed-by": "me"})
    channel.sync(q)
    channel.drain(q)


@configured_scenario
def a_quorum_queue_keeps_the_time(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue(durable=True, arguments={"x-queue-type": "quorum"})
    channel.echo(q, b"1", headers={"a": 1})


def read_from_a_stream(lab: Lab, **properties: Any) -> None:
    """Publish a message to a stream, and consume it."""
    channel, q = lab.channel(), lab.queue(durable=True, arguments={"x-queue-type": "stream"})
    lab.put(q, b"1", **properties)
    channel.call(Basic.Qos, prefetch_count=1)
    channel.consume(q, arguments={"x-stream-offset": "first"})
    channel.expect(Basic.Deliver)


@configured_scenario
def a_stream_keeps_the_time(lab: Lab) -> None:
    read_from_a_stream(lab, headers={"a": 1})


@configured_scenario
def a_stream_keeps_the_time_that_the_publisher_has_set(lab: Lab) -> None:
    read_from_a_stream(lab, timestamp=7, headers={"timestamp_in_ms": 5})


@configured_scenario
def a_stream_keeps_other_properties_beside_the_time(lab: Lab) -> None:
    read_from_a_stream(lab, message_id="m", content_type="text/plain", delivery_mode=2)
