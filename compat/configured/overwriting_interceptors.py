"""Interceptors that replace what publishers have set, and that note the time of each delivery."""

from __future__ import annotations

from pamqp.commands import Basic

from amqp_broker.conformance.lab import Lab
from compat.configured.area import Area
from compat.configured.interceptors import read_from_a_stream
from compat.configured.registry import configured_scenario

AREA = Area(
    "overwriting_interceptors",
    (
        "message_interceptors.incoming.set_header_timestamp.overwrite = true",
        "message_interceptors.incoming.set_header_routing_node.overwrite = false",
        "message_interceptors.outgoing.timestamp.enabled = true",
    ),
    since=(4, 2),
)


@configured_scenario
def a_time_that_the_publisher_has_set_is_replaced(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue(durable=True)
    channel.echo(q, b"1", timestamp=7, headers={"timestamp_in_ms": 5, "a": 1})


@configured_scenario
def a_node_that_the_publisher_has_set_stays(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue(durable=True)
    channel.echo(q, b"1", headers={"x-routed-by": "me"})


@configured_scenario
def a_delivery_has_the_time_at_which_it_is_sent(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue(durable=True)
    channel.consume(q)
    lab.put(q, b"1", headers={"x-opt-rabbitmq-sent-time": 5, "z": 1})
    channel.expect(Basic.Deliver)


@configured_scenario
def a_redelivery_has_the_time_at_which_it_is_sent(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue(durable=True)
    lab.put(q, b"1")
    channel.consume(q)
    channel.expect(Basic.Deliver)
    channel.reject(1)
    channel.expect(Basic.Deliver)


@configured_scenario
def a_dead_letter_has_the_time_of_its_own_delivery(lab: Lab) -> None:
    channel, dead = lab.channel(), lab.queue("dead", durable=True)
    q = lab.queue(durable=True, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
    lab.put(q, b"1")
    channel.get(q)
    channel.nack(1, requeue=False)
    channel.sync(q, dead)
    channel.get(dead)


@configured_scenario
def a_returned_message_has_no_time_of_a_delivery(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"1", routing_key=lab.name("missing"), mandatory=True)
    channel.sync()


@configured_scenario
def a_direct_reply_has_the_time_of_its_delivery(lab: Lab) -> None:
    asking, q = lab.channel(), lab.queue(durable=True)
    asking.consume("amq.rabbitmq.reply-to", no_ack=True)
    asking.publish(b"question", routing_key=q, reply_to="amq.rabbitmq.reply-to")
    answering = lab.channel()
    answering.sync(q)
    reply_to = (answering.get(q, no_ack=True).properties or {})["reply_to"]
    answering.publish(b"answer", routing_key=reply_to)
    asking.expect(Basic.Deliver)


@configured_scenario
def a_message_from_a_stream_has_the_time_of_its_delivery(lab: Lab) -> None:
    read_from_a_stream(lab, timestamp=7, headers={"a": 1})
