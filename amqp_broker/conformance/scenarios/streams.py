"""Streams: refusals, start offsets of readers, and deliveries."""

from __future__ import annotations

from typing import Any

from pamqp import commands
from pamqp.commands import Basic, Confirm, Queue

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.scenario_channel import Channel
from amqp_broker.conformance.wire import Field

STREAM = {"x-queue-type": "stream"}


def _stream(lab: Lab, *bodies: bytes, **arguments: Any) -> str:
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    s = lab.queue("s", durable=True, arguments={**STREAM, **given})
    if bodies:
        lab.put(s, *bodies)
    return s


def _reader(lab: Lab, prefetch: int = 100) -> Channel:
    channel = lab.channel()
    channel.ask(Basic.Qos, prefetch_count=prefetch)
    return channel


def _read_to_next(lab: Lab, stream: str, arguments: dict[str, Any]) -> None:
    """Read up to and including a message that is published meanwhile."""
    reader = _reader(lab)
    reader.consume(stream, arguments=arguments)
    lab.put(stream, b"another")
    offset = reader.connection.label.encode()
    lab.put(stream, offset)
    while reader.expect(Basic.Deliver).body != offset:
        pass
    reader.call(Basic.Cancel, consumer_tag="c")


def _declare_each(lab: Lab, *tables: dict[str, Any], **flags: bool) -> None:
    connection = lab.connect()
    for arguments in tables:
        channel = connection.channel()
        channel.call(Queue.Declare, queue=lab.name("s"), durable=True, **flags, arguments={**STREAM, **arguments})
        if channel.is_open:
            channel.ask(Queue.Delete, queue=lab.name("s"))


# --- declaring


@scenario
def a_stream_is_durable_and_for_everybody(lab: Lab) -> None:
    connection = lab.connect()
    for flags in (
        {},
        {"exclusive": True},
        {"durable": True, "exclusive": True},
        {"durable": True, "auto_delete": True},
        {"auto_delete": True},
        {"auto_delete": True, "exclusive": True},
    ):
        connection.channel().call(Queue.Declare, queue=lab.name("s"), **flags, arguments=STREAM)


@scenario
def a_stream_has_a_name_of_its_client(lab: Lab) -> None:
    lab.channel().call(Queue.Declare, durable=True, arguments=STREAM)


@scenario
def a_stream_may_be_declared_again(lab: Lab) -> None:
    connection = lab.connect()
    s = _stream(lab, x_max_age="1D")
    connection.channel().call(Queue.Declare, queue=s, durable=True, arguments={**STREAM, "x-max-age": "1D"})
    for arguments in (STREAM, {**STREAM, "x-max-age": "2D"}, {"x-max-age": "1D"}):
        connection.channel().call(Queue.Declare, queue=s, durable=True, arguments=arguments)
    connection.channel().call(Queue.Declare, queue=s, passive=True)


@scenario
def settings_of_a_stream_are_compared_when_it_is_declared_again(lab: Lab) -> None:
    connection = lab.connect()
    given = {"x-max-length-bytes": 1000, "x-stream-max-segment-size-bytes": 500, "x-initial-cluster-size": 1}
    s = lab.queue("s", durable=True, arguments={**STREAM, **given})
    for name in given:
        other = {**STREAM, **given, name: 2}
        connection.channel().call(Queue.Declare, queue=s, durable=True, arguments=other)


@scenario
def arguments_that_a_stream_has_not_are_refused(lab: Lab) -> None:
    _declare_each(
        lab,
        {"x-max-length": 5},
        {"x-max-priority": 5},
        {"x-message-ttl": 1000},
        {"x-expires": 1000},
        {"x-overflow": "reject-publish"},
        {"x-dead-letter-exchange": "dlx"},
        {"x-dead-letter-exchange": "dlx", "x-dead-letter-routing-key": "k"},
        {"x-queue-mode": "lazy"},
        {"x-single-active-consumer": True},
        {"x-delivery-limit": 1},
        {"x-quorum-initial-group-size": 1},
    )


@scenario
def arguments_of_a_stream_are_checked(lab: Lab) -> None:
    _declare_each(
        lab,
        {"x-max-length-bytes": 0},
        {"x-max-length-bytes": -1},
        {"x-max-length-bytes": "5"},
        {"x-max-age": "1D"},
        {"x-max-age": "7h"},
        {"x-max-age": "0s"},
        {"x-max-age": "1"},
        {"x-max-age": "1W"},
        {"x-max-age": "1 D"},
        {"x-max-age": 60},
        {"x-stream-max-segment-size-bytes": 1},
        {"x-stream-max-segment-size-bytes": 0},
        {"x-stream-max-segment-size-bytes": -1},
        {"x-stream-max-segment-size-bytes": "1"},
        {"x-stream-max-segment-size-bytes": 3_000_000_000},
        {"x-stream-max-segment-size-bytes": 3_000_000_001},
        {"x-initial-cluster-size": 0},
        {"x-initial-cluster-size": 1},
        {"x-initial-cluster-size": "1"},
        {"x-queue-leader-locator": "least-leaders"},
        {"x-queue-leader-locator": "client-local"},
        {"x-queue-leader-locator": "nowhere"},
        {"x-queue-leader-locator": 1},
    )


@scenario
def arguments_of_streams_are_checked_for_other_queues(lab: Lab) -> None:
    connection = lab.connect()
    for arguments in ({"x-max-age": "x"}, {"x-stream-max-segment-size-bytes": "x"}, {"x-initial-cluster-size": 0}):
        connection.channel().call(Queue.Declare, queue=lab.name("q"), durable=True, arguments=arguments)


@scenario
def an_age_without_a_number_is_refused(lab: Lab) -> None:
    _declare_each(lab, {"x-max-age": "D"})


# --- unsupported features of streams


@scenario
def nothing_is_pulled_from_a_stream(lab: Lab) -> None:
    s = _stream(lab, b"one")
    lab.channel().get(s)
    lab.channel().get(s, no_ack=True)


@scenario
def a_stream_is_not_purged(lab: Lab) -> None:
    lab.channel().call(Queue.Purge, queue=_stream(lab, b"one"))


@scenario
def a_reader_has_a_prefetch(lab: Lab) -> None:
    s = _stream(lab)
    lab.channel().call(Basic.Consume, queue=s)
    lab.channel().call(Basic.Consume, queue=s, no_ack=True)


@scenario
def a_reader_acknowledges(lab: Lab) -> None:
    _reader(lab).call(Basic.Consume, queue=_stream(lab), no_ack=True)


@scenario
def a_stream_knows_no_prefetch_of_a_channel(lab: Lab) -> None:
    s = _stream(lab)
    channel = lab.channel()
    channel.call(Basic.Qos, prefetch_count=5, global_=True)
    channel.call(Basic.Consume, queue=s)
    channel = lab.channel()
    channel.call(Basic.Qos, prefetch_count=5)
    channel.call(Basic.Qos, prefetch_count=5, global_=True)
    channel.call(Basic.Consume, queue=s)


@scenario
def a_stream_is_deleted_whatever_is_in_it(lab: Lab) -> None:
    s = _stream(lab, b"one", b"two")
    channel = lab.channel()
    channel.call(Queue.Delete, queue=s, if_empty=True)
    channel.call(Queue.Declare, queue=s, passive=True)


@scenario
def a_stream_in_use_is_deleted(lab: Lab) -> None:
    s = _stream(lab)
    reader = _reader(lab)
    reader.consume(s)
    lab.channel().call(Queue.Delete, queue=s, if_unused=True)
    reader.expect(Basic.Cancel)


@scenario
def readers_of_a_stream_are_not_counted_by_declare_ok(lab: Lab) -> None:
    s = _stream(lab)
    reader = _reader(lab)
    reader.consume(s)
    lab.channel().call(Queue.Declare, queue=s, passive=True)
    reader.call(Queue.Declare, queue=s, durable=True, arguments=STREAM)


# --- reading


@scenario
def a_delivery_has_its_offset(lab: Lab) -> None:
    s = _stream(lab)
    exchange = lab.name("x")
    lab.channel().exchange(exchange, "fanout")
    lab.channel().bind(s, exchange)
    publisher = lab.channel()
    publisher.call(Confirm.Select)
    publisher.publish(b"plain", routing_key=s)
    publisher.publish(b"with headers", routing_key=s, headers={"a": "b"}, content_type="text/plain")
    publisher.publish(b"all", routing_key=s, delivery_mode=2, priority=3, correlation_id="c", message_id="m")
    publisher.publish(b"through an exchange", exchange=exchange, routing_key="some.key")
    publisher.publish(b"", routing_key=s)
    publisher.publish(b"offset", routing_key=s, headers={"x-stream-offset": "mine", "z": 1})
    publisher.confirms(1, 6)
    reader = _reader(lab)
    reader.consume(s, arguments={"x-stream-offset": "first"})
    reader.deliveries(6)
    reader.sync()


@scenario
def a_reader_receives_the_header_cc(lab: Lab) -> None:
    s = _stream(lab)
    publisher = lab.channel()
    publisher.call(Confirm.Select)
    publisher.publish(b"cc", routing_key="nowhere", headers={"CC": [s]})
    publisher.publish(b"bcc", routing_key="nowhere", headers={"BCC": [s]})
    publisher.confirms(1, 2)
    reader = _reader(lab)
    reader.consume(s, arguments={"x-stream-offset": "first"})
    reader.deliveries(2)


@scenario
def readers_begin_where_they_say(lab: Lab) -> None:
    s = _stream(lab, b"zero", b"one", b"two", b"three")
    for offset in (None, "first", "last", "next", 0, 2, -1, Field("l", 3), Field("s", 1), Field("x", b"first")):
        _read_to_next(lab, s, {} if offset is None else {"x-stream-offset": offset})


@scenario
def a_reader_waits_for_an_offset_that_is_not_there_yet(lab: Lab) -> None:
    s = _stream(lab, b"zero", b"one")
    reader = _reader(lab)
    reader.consume(s, arguments={"x-stream-offset": 4})
    lab.put(s, b"two", b"three", b"four", b"five")
    reader.deliveries(2)


@scenario
def a_reader_begins_at_a_time(lab: Lab) -> None:
    s = _stream(lab, b"zero", b"one")
    for offset in (Field("T", 0), Field("T", 4_000_000_000), "1h", "7D", "1Y", "2M", "3m"):
        _read_to_next(lab, s, {"x-stream-offset": offset})


@scenario
def an_offset_that_is_not_a_time_is_refused(lab: Lab) -> None:
    s = _stream(lab)
    for offset in ("3", "1W", "0s"):
        _reader(lab).call(Basic.Consume, queue=s, consumer_tag="c", arguments={"x-stream-offset": offset})


@scenario
def an_invalid_offset_is_refused(lab: Lab) -> None:
    s = _stream(lab)
    _reader(lab).call(Basic.Consume, queue=s, consumer_tag="c", arguments={"x-stream-offset": "foo"})


@scenario
def an_offset_is_nothing_for_other_queues(lab: Lab) -> None:
    q = lab.queue()
    _reader(lab).call(Basic.Consume, queue=q, consumer_tag="c", arguments={"x-stream-offset": "foo"})
    _reader(lab).call(Basic.Consume, queue=q, consumer_tag="c", arguments={"x-stream-offset": "first"})


@scenario
def an_ack_gives_credit_in_any_order(lab: Lab) -> None:
    s = _stream(lab, *(str(number).encode() for number in range(8)))
    reader = _reader(lab, prefetch=2)
    reader.consume(s, arguments={"x-stream-offset": "first"})
    reader.deliveries(2)
    reader.ack(2)
    reader.deliveries(1)
    reader.ack(1)
    reader.deliveries(1)
    reader.ack(0, multiple=True)
    reader.deliveries(2)
    reader.sync()
    reader.ack(1)
    reader.expect(commands.Channel.Close)


@scenario
def a_nack_of_a_stream_delivery_is_credit(lab: Lab) -> None:
    s = _stream(lab, b"zero", b"one", b"two")
    reader = _reader(lab, prefetch=1)
    reader.consume(s, arguments={"x-stream-offset": "first"})
    reader.deliveries(1)
    reader.nack(1)
    reader.expect(Basic.Deliver)


@scenario
def a_reject_of_a_stream_delivery_is_credit(lab: Lab) -> None:
    s = _stream(lab, b"zero", b"one", b"two")
    reader = _reader(lab, prefetch=1)
    reader.consume(s, arguments={"x-stream-offset": "first"})
    reader.deliveries(1)
    reader.reject(1, requeue=False)
    reader.expect(Basic.Deliver)


@scenario
def what_is_recovered_is_not_delivered_again(lab: Lab) -> None:
    s = _stream(lab, b"zero", b"one", b"two")
    reader = _reader(lab, prefetch=2)
    reader.consume(s, arguments={"x-stream-offset": "first"})
    reader.deliveries(2)
    reader.send(Basic.Recover, requeue=True)
    # In any order.
    for _ in range(2):
        reader.expect(Basic.RecoverOk, Basic.Deliver)


@scenario
def readers_do_not_know_of_each_other(lab: Lab) -> None:
    s = _stream(lab, b"zero", b"one", b"two")
    first, second = _reader(lab), _reader(lab, prefetch=1)
    first.consume(s, arguments={"x-stream-offset": "first"})
    second.consume(s, "d", arguments={"x-stream-offset": 1})
    first.deliveries(3)
    second.deliveries(1)
    lab.put(s, b"three")
    first.deliveries(1)
    second.ack(1)
    second.deliveries(1)


@scenario
def a_reader_that_is_cancelled_gets_no_more(lab: Lab) -> None:
    s = _stream(lab, b"zero", b"one", b"two")
    reader = _reader(lab, prefetch=1)
    reader.consume(s, arguments={"x-stream-offset": "first"})
    reader.deliveries(1)
    reader.call(Basic.Cancel, consumer_tag="c")
    reader.ack(1)
    reader.sync()
    reader.consume(s, arguments={"x-stream-offset": 2})
    reader.deliveries(1)


@scenario
def an_exclusive_reader_is_not_alone(lab: Lab) -> None:
    s = _stream(lab, b"zero")
    for flags in ({"exclusive": True}, {"exclusive": True}, {}):
        reader = _reader(lab)
        reader.call(Basic.Consume, queue=s, consumer_tag="c", arguments={"x-stream-offset": "first"}, **flags)
        reader.deliveries(1)


@scenario
def what_is_read_stays_in_a_stream_until_it_is_deleted(lab: Lab) -> None:
    s = _stream(lab, b"zero", b"one")
    reader = _reader(lab)
    reader.consume(s, arguments={"x-stream-offset": "first"})
    reader.deliveries(2)
    reader.ack(0, multiple=True)
    reader.sync()
    lab.channel().call(Queue.Delete, queue=s)
    reader.expect(Basic.Cancel)


@scenario
def a_reader_has_no_priority(lab: Lab) -> None:
    s = _stream(lab)
    _reader(lab).call(Basic.Consume, queue=s, arguments={"x-priority": "high"})
    _reader(lab).call(Basic.Consume, queue=s, arguments={"x-priority": 10})


@scenario
def readers_of_a_deleted_stream_are_cancelled(lab: Lab) -> None:
    s = _stream(lab, b"zero")
    reader = _reader(lab)
    reader.consume(s, arguments={"x-stream-offset": "first"})
    reader.deliveries(1)
    lab.channel().call(Queue.Delete, queue=s)
    reader.expect(Basic.Cancel)
    reader.ack(1)
    reader.sync()


@scenario
def messages_to_a_stream_do_not_expire(lab: Lab) -> None:
    s = _stream(lab)
    lab.put(s, b"zero", expiration="0", delivery_mode=1)
    lab.put(s, b"one", expiration="100", delivery_mode=2)
    reader = _reader(lab)
    reader.consume(s, arguments={"x-stream-offset": "first"})
    reader.deliveries(2)


@scenario
def a_transaction_may_publish_to_a_stream_and_settle_its_deliveries(lab: Lab) -> None:
    s = _stream(lab)
    channel = _reader(lab)
    channel.call(commands.Tx.Select)
    channel.publish(b"zero", routing_key=s)
    channel.publish(b"one", routing_key=s)
    channel.call(commands.Tx.Commit)
    channel.consume(s, arguments={"x-stream-offset": "first"})
    channel.deliveries(2)
    channel.ack(2, multiple=True)
    channel.call(commands.Tx.Commit)


@scenario
def a_stream_takes_large_messages(lab: Lab) -> None:
    s = _stream(lab)
    lab.put(s, b"x" * 300_000)
    reader = _reader(lab)
    reader.consume(s, arguments={"x-stream-offset": "first"})
    reader.deliveries(1)
