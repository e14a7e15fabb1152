"""AMQPStorm, with its client of the management API."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from amqpstorm import AMQPChannelError, AMQPConnectionError, Channel, Connection, Message, UriConnection
from amqpstorm.management import ManagementApi
from protocol import CA_FILE, MANAGEMENT_URL, PATIENCE_S, QUIET_S, TLS_URL, URL, WRONG_URL, ask, deaths, main, name


@contextmanager
def opened() -> Iterator[Channel]:
    with UriConnection(URL) as connection, connection.channel() as channel:
        yield channel


def queue(channel: Channel, stem: str, **arguments: Any) -> str:
    channel.queue.declare(name(stem), exclusive=True, arguments=arguments)
    return name(stem)


class Inbox(list[Message]):
    def __init__(self, channel: Channel, queue: str, **options: Any) -> None:
        self.channel = channel
        channel.basic.consume(self.append, queue, **options)

    def take(self, count: int = 1) -> list[Message]:
        end = time.monotonic() + PATIENCE_S
        while len(self) < count and time.monotonic() < end:
            self.channel.process_data_events()
            time.sleep(0.01)
        assert len(self) >= count, f"{len(self)} of {count} messages came"
        taken, self[:count] = self[:count], []
        return taken

    def bodies(self, count: int = 1) -> list[str]:
        return [message.body for message in self.take(count)]


@contextmanager
def refused(channel: Channel, code: int) -> Iterator[Channel]:
    other = channel._connection.channel()
    try:
        yield other
    except AMQPChannelError as error:
        assert error.error_code == code, error
    else:
        raise AssertionError(f"not refused with {code}")


def connect() -> None:
    with opened() as channel:
        q = queue(channel, "connect")
        sent = Message.create(channel, "hello", {"message_id": "m1", "headers": {"n": 1}, "content_type": "text/plain"})
        sent.publish(q)
        [got] = Inbox(channel, q, no_ack=True).take()
        assert (got.body, got.message_id, got.properties["headers"]) == ("hello", "m1", {"n": 1}), got


def topology() -> None:
    with opened() as channel:
        first, second, q = name("events"), name("archive"), name("topology")
        channel.exchange.declare(first, "topic", durable=True)
        channel.exchange.declare(second, "fanout", durable=True)
        channel.queue.declare(q, durable=True)
        channel.exchange.bind(second, first, "order.#")
        channel.queue.bind(q, second)
        channel.basic.publish("1", "order.created", first)
        channel.exchange.unbind(second, first, "order.#")
        channel.basic.publish("2", "order.created", first)
        channel.queue.unbind(q, second)
        assert channel.queue.purge(q)["message_count"] == 1
        with refused(channel, 404) as other:
            other.queue.declare(name("missing"), passive=True)
        with refused(channel, 406) as other:
            other.queue.declare(q, durable=False)
        channel.queue.delete(q)
        channel.exchange.delete(first)
        channel.exchange.delete(second)


def confirms() -> None:
    with opened() as channel:
        q = queue(channel, "confirms")
        channel.confirm_deliveries()
        assert all(channel.basic.publish("x", q, properties={"delivery_mode": 2}) for _ in range(100))


def returns() -> None:
    with opened() as channel:
        channel.confirm_deliveries()
        try:
            channel.basic.publish("lost", name("nobody"), mandatory=True)
            channel.check_for_errors()
        except AMQPChannelError as error:
            assert error.error_code == 312, error
        else:
            raise AssertionError("not returned")


def consume() -> None:
    with opened() as channel:
        q = queue(channel, "consume")
        for number in range(10):
            channel.basic.publish(str(number), q)
        channel.basic.qos(3)
        inbox = Inbox(channel, q)
        time.sleep(QUIET_S)
        channel.process_data_events()
        assert len(inbox) == 3
        channel.basic.ack(inbox.take(3)[-1].delivery_tag, multiple=True)
        assert inbox.bodies(3) == ["3", "4", "5"]


def requeue() -> None:
    with opened() as channel:
        q = queue(channel, "requeue")
        inbox = Inbox(channel, q)
        channel.basic.publish("again", q)
        [first] = inbox.take()
        first.nack(requeue=True)
        [second] = inbox.take()
        assert (first.redelivered, second.redelivered) == (False, True)


def dead_letter() -> None:
    with opened() as channel:
        to = "x-dead-letter-routing-key"
        work = queue(channel, "work", **{"x-dead-letter-exchange": "", to: name("wait")})
        queue(channel, "wait", **{"x-dead-letter-exchange": "", to: work, "x-message-ttl": 200})
        inbox = Inbox(channel, work)
        channel.basic.publish("try", work)
        inbox.take()[0].reject(requeue=False)
        [second] = inbox.take()
        history = deaths(second.properties["headers"])
        assert history == [(name("wait"), "expired", 1), (work, "rejected", 1)], history


def ttl() -> None:
    with opened() as channel:
        dead = queue(channel, "dead")
        inbox = Inbox(channel, dead, no_ack=True)
        to_dead: dict[str, Any] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        channel.basic.publish("own", queue(channel, "own", **to_dead), properties={"expiration": "100"})
        assert inbox.bodies() == ["own"]
        channel.basic.publish("all", queue(channel, "all", **to_dead, **{"x-message-ttl": 200}))
        assert inbox.bodies() == ["all"]


def priority() -> None:
    with opened() as channel:
        q = queue(channel, "priority", **{"x-max-priority": 5})
        for number in (1, 5, 3):
            channel.basic.publish(str(number), q, properties={"priority": number})
        assert Inbox(channel, q, no_ack=True).bodies(3) == ["5", "3", "1"]


def rpc() -> None:
    with opened() as server, opened() as client:
        q = queue(server, "rpc")
        questions = Inbox(server, q, no_ack=True)
        replies = Inbox(client, "amq.rabbitmq.reply-to", no_ack=True)
        asking = {"reply_to": "amq.rabbitmq.reply-to", "correlation_id": "7"}
        client.basic.publish("question", q, properties=asking)
        [question] = questions.take()
        answering = {"correlation_id": question.correlation_id}
        server.basic.publish(question.body.upper(), question.reply_to, properties=answering)
        [answer] = replies.take()
        assert (answer.body, answer.correlation_id) == ("QUESTION", "7")


def server_named() -> None:
    with opened() as channel, opened() as other:
        q = channel.queue.declare(exclusive=True)["queue"]
        assert q.startswith("amq.gen-"), q
        with refused(other, 405) as third:
            third.basic.consume(print, q)


def cancel() -> None:
    with opened() as channel:
        q = queue(channel, "cancel")
        channel.basic.consume(print, q)
        channel.queue.delete(q)
        end = time.monotonic() + PATIENCE_S
        while channel.consumer_tags and time.monotonic() < end:
            time.sleep(0.01)
        assert not channel.consumer_tags, "the client reported nothing"


def stream() -> None:
    with opened() as channel:
        q = name("stream")
        channel.queue.declare(q, durable=True, arguments={"x-queue-type": "stream"})
        channel.confirm_deliveries()
        for number in range(10):
            channel.basic.publish(str(number), q)
        for offset, expected in (("first", ["0", "1", "2"]), (7, ["7", "8", "9"])):
            reader = channel._connection.channel()
            reader.basic.qos(10)
            assert Inbox(reader, q, arguments={"x-stream-offset": offset}).bodies(3) == expected
            reader.close()
        channel.queue.delete(q)


def large() -> None:
    with opened() as channel:
        q = queue(channel, "large")
        body = "0123456789abcdef" * (1 << 20)
        channel.basic.publish(body, q)
        assert Inbox(channel, q, no_ack=True).bodies() == [body]


def tls() -> None:
    port = urlsplit(TLS_URL).port
    for authority in (CA_FILE, None):
        options = {"context": ssl.create_default_context(cafile=authority), "server_hostname": "localhost"}
        try:
            Connection("localhost", "guest", "guest", port=port, ssl=True, ssl_options=options).close()
        except AMQPConnectionError as error:
            assert authority is None, error
            assert "CERTIFICATE_VERIFY_FAILED" in str(error), error
        else:
            assert authority, "connected without the authority"


def wrong_password() -> None:
    try:
        UriConnection(WRONG_URL)
    except AMQPConnectionError as error:
        assert error.error_code == 403, error
    else:
        raise AssertionError("not refused")


def forced_close() -> None:
    """The client's own management API sees it as well."""
    with opened() as channel:
        address = urlsplit(MANAGEMENT_URL)
        api = ManagementApi(f"http://{address.hostname}:{address.port}", "guest", "guest")
        assert api.aliveness_test("/")["status"] == "ok"
        assert api.user.get("guest")["name"] == "guest"
        ask("CLOSE")
        wait_for_end(channel, 320)


def reconnect() -> None:
    q = name("reconnect")
    with UriConnection(URL) as connection:
        channel = connection.channel()
        channel.queue.declare(q, durable=True)
        channel.confirm_deliveries()
        channel.basic.publish("kept", q, properties={"delivery_mode": 2})
        ask("RESTART")
        wait_for_end(channel, None)
    with opened() as channel:
        assert Inbox(channel, q, no_ack=True).bodies() == ["kept"]
        channel.queue.delete(q)


def wait_for_end(channel: Channel, code: int | None) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            channel._connection.check_for_errors()
        except AMQPConnectionError as error:
            assert code in (None, error.error_code), error
            return
        time.sleep(0.01)
    raise AssertionError("the client did not report the lost connection")


SCENARIOS = (
    connect, topology, confirms, returns, consume, requeue, dead_letter, ttl, priority, rpc, server_named, cancel,
    stream, large, tls, wrong_password, forced_close, reconnect,
)  # fmt: skip

main({scenario.__name__: scenario for scenario in SCENARIOS})
