"""Publishing: bodies of any size, returns of unroutable messages, and refusals."""

from __future__ import annotations

from typing import Any

from pamqp import commands
from pamqp.commands import Basic, Confirm, Exchange

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.scenarios.properties import ALL_PROPERTIES

WRONG_PROPERTIES: dict[str, Any] = {"user_id": "somebody", "expiration": "abc", "headers": {"CC": 1}}


def _body(size: int) -> bytes:
    """Return a body in which a lost, duplicated or swapped piece shows."""
    return b"".join(number.to_bytes(4, "big") for number in range(size // 4 + 1))[:size]


# --- bodies


@scenario
def an_empty_body_has_no_body_frame(lab: Lab) -> None:
    channel = lab.channel()
    channel.shows_frame_sizes = True
    channel.echo(lab.queue(), b"")


@scenario
def bodies_around_the_frame_size_come_back_whole(lab: Lab) -> None:
    channel = lab.connect(frame_max=8192).channel()
    for size in (1, 8183, 8184, 8185, 16368, 16369):
        channel.echo(lab.queue(), _body(size))


@scenario
def a_large_body_is_cut_into_the_largest_frames(lab: Lab) -> None:
    channel = lab.channel()
    channel.shows_frame_sizes = True
    channel.echo(lab.queue(), _body(300_000))


@scenario
def a_consumer_with_smaller_frames_gets_the_body_in_them(lab: Lab) -> None:
    publisher, consumer = lab.channel(), lab.connect(frame_max=8192).channel()
    consumer.shows_frame_sizes = True
    q = consumer.declare(lab.name("q"))
    publisher.publish(_body(100_000), routing_key=q)
    publisher.sync(q)
    consumer.get(q)


@scenario
def a_body_may_be_cut_in_any_way(lab: Lab) -> None:
    lab.channel().echo(lab.queue(), _body(100_000), frame_sizes=(1, 0, 7, 50_000, 3, 0, 0, 1))


@scenario
def a_body_cut_into_single_bytes_comes_back_whole(lab: Lab) -> None:
    lab.channel().echo(lab.queue(), b"hello", frame_sizes=(1, 1, 1, 1, 1))


@scenario
def a_body_of_five_megabytes_comes_back_whole(lab: Lab) -> None:
    lab.channel().echo(lab.queue(), _body(5_000_000))


@scenario
def a_body_of_more_than_16_mebibytes_is_too_large(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(bytes(16 * 1024 * 1024), routing_key=lab.name("missing"))
    channel.sync()
    channel.publish(bytes(16 * 1024 * 1024 + 1), routing_key=lab.name("missing"))
    channel.call(Basic.Qos, prefetch_count=1)


# --- returns


@scenario
def what_is_mandatory_and_unroutable_is_returned_as_it_was(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"x", routing_key=lab.name("missing"), mandatory=True, **ALL_PROPERTIES)
    channel.publish(b"", exchange="amq.topic", routing_key="a.b", mandatory=True)
    channel.publish(_body(200_000), exchange="amq.fanout", routing_key=lab.name("k"), mandatory=True)
    channel.sync()


@scenario
def what_is_unroutable_and_not_mandatory_is_dropped(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"x", routing_key=lab.name("missing"))
    channel.sync()


@scenario
def what_is_mandatory_and_routed_is_not_returned(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"x", routing_key=lab.queue(), mandatory=True)
    channel.sync()


@scenario
def immediate_is_not_implemented(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"x", routing_key=lab.queue(), immediate=True)
    channel.expect()


# --- refused


@scenario
def publishing_to_a_missing_exchange_closes_the_channel(lab: Lab) -> None:
    connection = lab.connect()
    channel = connection.channel()
    channel.publish(b"x", exchange=lab.name("missing"), routing_key="k")
    channel.expect()
    connection.channel().publish(b"x", routing_key=lab.queue(), mandatory=True)


@scenario
def what_is_published_after_an_error_is_lost(lab: Lab) -> None:
    connection = lab.connect()
    channel = connection.channel()
    q = lab.queue()
    channel.publish(b"before", routing_key=q)
    channel.publish(b"wrong", exchange=lab.name("missing"))
    channel.publish(b"after", routing_key=q)
    channel.expect()
    other = connection.channel()
    other.sync(q)
    other.drain(q)


@scenario
def the_exchange_is_checked_before_the_properties(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"x", exchange=lab.name("missing"), **WRONG_PROPERTIES)
    channel.expect()


@scenario
def an_internal_exchange_is_refused_before_the_properties_are_checked(lab: Lab) -> None:
    channel = lab.channel()
    channel.exchange(lab.name("inner"), "fanout", internal=True)
    channel.publish(b"x", exchange=lab.name("inner"), **WRONG_PROPERTIES)
    channel.expect()


@scenario
def of_several_wrong_properties_one_is_reported(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"x", exchange="amq.fanout", **WRONG_PROPERTIES)
    channel.expect()


@scenario
def the_expiration_is_checked_before_cc(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"x", exchange="amq.fanout", expiration="abc", headers={"CC": 1})
    channel.expect()


@scenario
def the_exchange_name_is_not_stripped_when_publishing(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"x", exchange="amq.fanout\r\n")
    channel.expect()


# --- with confirms


@scenario
def a_publish_that_is_refused_is_not_confirmed(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Confirm.Select)
    channel.publish(b"x", exchange=lab.name("missing"))
    channel.expect()


@scenario
def a_deleted_exchange_is_missing_at_once(lab: Lab) -> None:
    channel = lab.channel()
    channel.exchange(lab.name("x"), "fanout")
    channel.publish(b"x", exchange=lab.name("x"), mandatory=True)
    channel.send(Exchange.Delete, exchange=lab.name("x"), nowait=True)
    channel.publish(b"x", exchange=lab.name("x"), mandatory=True)
    channel.expect(commands.Channel.Close)
