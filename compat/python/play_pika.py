"""pika's BlockingConnection, as its users write it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import (
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    ProbableAuthenticationError,
    StreamLostError,
    UnroutableError,
)
from protocol import CA_FILE, PATIENCE_S, QUIET_S, TLS_URL, URL, WRONG_URL, ask, deaths, main, name

PERSISTENT = pika.BasicProperties(delivery_mode=2)
Message = tuple[Any, Any, bytes]


@contextmanager
def opened() -> Iterator[BlockingChannel]:
    connection = BlockingConnection(pika.URLParameters(URL))
    try:
        yield connection.channel()
    finally:
        if connection.is_open:
            connection.close()


def queue(channel: BlockingChannel, stem: str, **arguments: Any) -> str:
    channel.queue_declare(name(stem), exclusive=True, arguments=arguments)
    return name(stem)


def take(channel: BlockingChannel, queue: str, count: int, *, auto_ack: bool = True, **options: Any) -> list[Message]:
    """Consume a number of messages, and cancel."""
    found: list[Message] = []
    for method, properties, body in channel.consume(queue, auto_ack=auto_ack, inactivity_timeout=PATIENCE_S, **options):
        assert method is not None, f"{len(found)} of {count} messages came"
        found.append((method, properties, body))
        if len(found) == count:
            break
    channel.cancel()
    return found


def bodies(channel: BlockingChannel, queue: str, count: int) -> list[bytes]:
    return [body for _, _, body in take(channel, queue, count)]


@contextmanager
def refused(connection: BlockingConnection, code: int) -> Iterator[BlockingChannel]:
    try:
        yield connection.channel()
    except ChannelClosedByBroker as error:
        assert error.reply_code == code, error
    else:
        raise AssertionError(f"not refused with {code}")


def connect() -> None:
    with opened() as channel:
        q = queue(channel, "connect")
        sent = pika.BasicProperties(content_type="text/plain", message_id="m1", headers={"n": 1})
        channel.basic_publish("", q, b"hello", sent)
        [(_, properties, body)] = take(channel, q, 1)
        assert (body, properties) == (b"hello", sent)
        channel.close()


def topology() -> None:
    with opened() as channel:
        first, second, q = name("events"), name("archive"), name("topology")
        channel.exchange_declare(first, "topic", durable=True)
        channel.exchange_declare(second, "fanout", durable=True)
        channel.queue_declare(q, durable=True)
        channel.exchange_bind(second, first, "order.#")
        channel.queue_bind(q, second)
        channel.basic_publish(first, "order.created", b"1")
        channel.exchange_unbind(second, first, "order.#")
        channel.basic_publish(first, "order.created", b"2")
        channel.queue_unbind(q, second)
        assert channel.queue_purge(q).method.message_count == 1
        with refused(channel.connection, 404) as other:
            other.queue_declare(name("missing"), passive=True)
        with refused(channel.connection, 406) as other:
            other.queue_declare(q, durable=False)
        channel.queue_delete(q)
        channel.exchange_delete(first)
        channel.exchange_delete(second)


def confirms() -> None:
    with opened() as channel:
        q = queue(channel, "confirms")
        channel.confirm_delivery()
        for _ in range(100):
            channel.basic_publish("", q, b"x", PERSISTENT)
        assert channel.queue_declare(q, passive=True).method.message_count == 100


def returns() -> None:
    with opened() as channel:
        channel.confirm_delivery()
        try:
            channel.basic_publish("", name("nobody"), b"lost", mandatory=True)
        except UnroutableError as error:
            [returned] = error.messages
            assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE"), returned
        else:
            raise AssertionError("not returned")


def consume() -> None:
    with opened() as channel:
        q = queue(channel, "consume")
        for number in range(10):
            channel.basic_publish("", q, b"%d" % number)
        channel.basic_qos(prefetch_count=3)
        found: list[Message] = []
        channel.basic_consume(q, lambda _, method, properties, body: found.append((method, properties, body)))
        channel.connection.process_data_events(QUIET_S)
        channel.connection.process_data_events(QUIET_S)
        assert [body for _, _, body in found] == [b"0", b"1", b"2"]
        channel.basic_ack(found[-1][0].delivery_tag, multiple=True)
        channel.connection.process_data_events(QUIET_S)
        channel.connection.process_data_events(QUIET_S)
        assert [body for _, _, body in found[3:]] == [b"3", b"4", b"5"]


def requeue() -> None:
    with opened() as channel:
        q = queue(channel, "requeue")
        channel.basic_publish("", q, b"again")
        [(first, _, _)] = take_one(channel, q)
        channel.basic_nack(first.delivery_tag)
        [(second, _, _)] = take_one(channel, q)
        assert (first.redelivered, second.redelivered) == (False, True)


def take_one(channel: BlockingChannel, queue: str) -> list[Message]:
    """Without cancelling: that would give back what is not acknowledged."""
    method, properties, body = next(channel.consume(queue, inactivity_timeout=PATIENCE_S))
    assert method is not None
    return [(method, properties, body)]


def dead_letter() -> None:
    with opened() as channel:
        work, wait = name("work"), name("wait")
        to = "x-dead-letter-routing-key"
        queue(channel, "work", **{"x-dead-letter-exchange": "", to: wait})
        queue(channel, "wait", **{"x-dead-letter-exchange": "", to: work, "x-message-ttl": 200})
        channel.basic_publish("", work, b"try")
        [(method, _, _)] = take_one(channel, work)
        channel.basic_reject(method.delivery_tag, requeue=False)
        [(_, properties, _)] = take_one(channel, work)
        assert deaths(properties.headers) == [(wait, "expired", 1), (work, "rejected", 1)]


def ttl() -> None:
    with opened() as channel:
        dead = queue(channel, "dead")
        to_dead: dict[str, Any] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        channel.basic_publish("", queue(channel, "own", **to_dead), b"own", pika.BasicProperties(expiration="100"))
        assert bodies(channel, dead, 1) == [b"own"]
        channel.basic_publish("", queue(channel, "all", **to_dead, **{"x-message-ttl": 200}), b"all")
        assert bodies(channel, dead, 1) == [b"all"]


def priority() -> None:
    with opened() as channel:
        q = queue(channel, "priority", **{"x-max-priority": 5})
        for number in (1, 5, 3):
            channel.basic_publish("", q, b"%d" % number, pika.BasicProperties(priority=number))
        assert bodies(channel, q, 3) == [b"5", b"3", b"1"]


def rpc() -> None:
    with opened() as channel:
        q = queue(channel, "rpc")
        server = channel.connection.channel()

        def serve(_: Any, method: Any, properties: Any, body: bytes) -> None:
            answer = pika.BasicProperties(correlation_id=properties.correlation_id)
            server.basic_publish("", properties.reply_to, body.upper(), answer)

        server.basic_consume(q, serve, auto_ack=True)
        replies = channel.consume("amq.rabbitmq.reply-to", auto_ack=True, inactivity_timeout=PATIENCE_S)
        # The generator consumes from its first step on, and one may ask only then.
        channel.connection.call_later(
            0.1,
            lambda: channel.basic_publish(
                "", q, b"question", pika.BasicProperties(reply_to="amq.rabbitmq.reply-to", correlation_id="7")
            ),
        )
        _, properties, body = next(replies)
        assert properties is not None
        assert (body, properties.correlation_id) == (b"QUESTION", "7")


def server_named() -> None:
    with opened() as channel, opened() as other:
        q = channel.queue_declare("", exclusive=True).method.queue
        assert q.startswith("amq.gen-"), q
        with refused(other.connection, 405) as third:
            third.basic_consume(q, lambda *_: None)


def cancel() -> None:
    with opened() as channel:
        q = queue(channel, "cancel")
        told: list[str] = []
        channel.add_on_cancel_callback(lambda frame: told.append(frame.method.consumer_tag))
        tag = channel.basic_consume(q, lambda *_: None)
        channel.queue_delete(q)
        channel.connection.process_data_events(QUIET_S)
        assert told == [tag]


def stream() -> None:
    with opened() as channel:
        q = name("stream")
        channel.queue_declare(q, durable=True, arguments={"x-queue-type": "stream"})
        channel.confirm_delivery()
        for number in range(10):
            channel.basic_publish("", q, b"%d" % number)
        for offset, expected in (("first", [b"0", b"1", b"2"]), (7, [b"7", b"8", b"9"])):
            reader = channel.connection.channel()
            reader.basic_qos(prefetch_count=10)
            found: list[bytes] = []

            def take_in(channel: Any, method: Any, _: Any, body: bytes, found: list[bytes] = found) -> None:
                found.append(body)
                channel.basic_ack(method.delivery_tag)

            reader.basic_consume(q, take_in, arguments={"x-stream-offset": offset})
            while len(found) < 3:
                channel.connection.process_data_events(PATIENCE_S)
            assert found[:3] == expected
            reader.close()
        channel.queue_delete(q)


def large() -> None:
    with opened() as channel:
        q = queue(channel, "large")
        body = b"0123456789abcdef" * (1 << 20)
        channel.basic_publish("", q, body)
        assert bodies(channel, q, 1) == [body]


def tls() -> None:
    parameters = pika.URLParameters(TLS_URL)
    # Where localhost has more than one address, pika does not say why it failed.
    parameters.host = "127.0.0.1"
    parameters.ssl_options = pika.SSLOptions(ssl.create_default_context(cafile=CA_FILE), "localhost")
    BlockingConnection(parameters).close()
    parameters.ssl_options = pika.SSLOptions(ssl.create_default_context(), "localhost")
    try:
        BlockingConnection(parameters)
    except ssl.SSLCertVerificationError:
        pass
    else:
        raise AssertionError("connected without the authority")


def wrong_password() -> None:
    try:
        BlockingConnection(pika.URLParameters(WRONG_URL))
    except ProbableAuthenticationError as error:
        assert "ACCESS_REFUSED" in str(error), error
    else:
        raise AssertionError("not refused")


def forced_close() -> None:
    with opened() as channel:
        ask("CLOSE")
        try:
            channel.connection.process_data_events(PATIENCE_S)
        except ConnectionClosedByBroker as error:
            assert error.reply_code == 320, error
        else:
            raise AssertionError("the client reported nothing")


def reconnect() -> None:
    q = name("reconnect")
    with opened() as channel:
        channel.queue_declare(q, durable=True)
        channel.confirm_delivery()
        channel.basic_publish("", q, b"kept", PERSISTENT)
        ask("RESTART")
        try:
            channel.connection.process_data_events(PATIENCE_S)
        except (StreamLostError, ConnectionClosedByBroker):
            pass
        else:
            raise AssertionError("the client did not report the lost connection")
    with opened() as channel:
        assert bodies(channel, q, 1) == [b"kept"]
        channel.queue_delete(q)


SCENARIOS = (
    connect, topology, confirms, returns, consume, requeue, dead_letter, ttl, priority, rpc, server_named, cancel,
    stream, large, tls, wrong_password, forced_close, reconnect,
)  # fmt: skip

main({scenario.__name__: scenario for scenario in SCENARIOS})
