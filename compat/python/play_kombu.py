"""kombu over its own AMQP transport (py-amqp)."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import amqp
from kombu import Connection, Consumer, Exchange, Message, Producer, Queue
from protocol import CA_FILE, PATIENCE_S, QUIET_S, TLS_URL, URL, WRONG_URL, ask, deaths, main, name


@contextmanager
def opened() -> Iterator[Connection]:
    with Connection(URL, transport_options={"confirm_publish": True}) as connection:
        connection.connect()
        yield connection


def queue(connection: Connection, stem: str, **options: Any) -> Queue:
    declared = Queue(name(stem), exclusive=True, **options)(connection.default_channel)
    declared.declare()
    return declared


def send(connection: Connection, key: str, body: str, **options: Any) -> None:
    Producer(connection).publish(body, routing_key=key, serializer=None, content_type="text/plain",
                                 content_encoding="utf-8", **options)  # fmt: skip


class Inbox(list[Message]):
    """A consumer and what has come to it; `take` waits."""

    def __init__(self, connection: Connection, queue: Queue, **options: Any) -> None:
        self.connection = connection
        self.consumer = Consumer(connection, [queue], on_message=self.append, **options)
        self.consumer.consume()

    def take(self, count: int = 1) -> list[Message]:
        while len(self) < count:
            self.connection.drain_events(timeout=PATIENCE_S)
        taken, self[:count] = self[:count], []
        return taken

    def bodies(self, count: int = 1) -> list[str]:
        return [message.body for message in self.take(count)]

    def settle(self) -> None:
        with suppress(socket.timeout):
            while True:
                self.connection.drain_events(timeout=QUIET_S)


def connect() -> None:
    with opened() as connection:
        q = queue(connection, "connect")
        inbox = Inbox(connection, q, no_ack=True)
        send(connection, q.name, "hello", message_id="m1", headers={"n": 1})
        [got] = inbox.take()
        assert (got.body, got.properties["message_id"], got.headers) == ("hello", "m1", {"n": 1}), got


def topology() -> None:
    with opened() as connection:
        channel = connection.default_channel
        first = Exchange(name("events"), "topic")(channel)
        second = Exchange(name("archive"), "fanout")(channel)
        first.declare()
        second.declare()
        second.bind_to(first, "order.#")
        q = Queue(name("topology"), second)(channel)
        q.declare()
        producer = Producer(connection, first, "order.created")
        producer.publish("1")
        second.unbind_from(first, "order.#")
        producer.publish("2")
        q.unbind_from(second)
        assert q.purge() == 1
        for code, other in ((404, Queue(name("missing"))), (406, Queue(name("topology"), durable=False))):
            try:
                other(connection.channel()).queue_declare(passive=code == 404)
            except amqp.ChannelError as error:
                assert error.reply_code == code, error
            else:
                raise AssertionError(f"not refused with {code}")
        q.delete()
        first.delete()
        second.delete()


def confirms() -> None:
    with opened() as connection:
        q = queue(connection, "confirms")
        for _ in range(100):
            send(connection, q.name, "x")
        assert q.queue_declare(passive=True).message_count == 100


def returns() -> None:
    with opened() as connection:
        told: list[Any] = []
        producer = Producer(connection, on_return=lambda *returned: told.append(returned))
        producer.publish("lost", routing_key=name("nobody"), mandatory=True)
        [(error, _, key, _)] = told
        assert (error.reply_code, key) == (312, name("nobody")), told


def consume() -> None:
    with opened() as connection:
        q = queue(connection, "consume")
        for number in range(10):
            send(connection, q.name, str(number))
        inbox = Inbox(connection, q, prefetch_count=3)
        inbox.settle()
        assert len(inbox) == 3
        inbox.take(3)[-1].ack(multiple=True)
        assert inbox.bodies(3) == ["3", "4", "5"]


def requeue() -> None:
    with opened() as connection:
        q = queue(connection, "requeue")
        inbox = Inbox(connection, q)
        send(connection, q.name, "again")
        [first] = inbox.take()
        first.requeue()
        [second] = inbox.take()
        found = (first.delivery_info["redelivered"], second.delivery_info["redelivered"])
        assert found == (False, True), found


def dead_letter() -> None:
    with opened() as connection:
        to = "x-dead-letter-routing-key"
        work = queue(connection, "work", queue_arguments={"x-dead-letter-exchange": "", to: name("wait")})
        queue(connection, "wait", message_ttl=0.2, queue_arguments={"x-dead-letter-exchange": "", to: work.name})
        inbox = Inbox(connection, work)
        send(connection, work.name, "try")
        [first] = inbox.take()
        first.reject()
        [second] = inbox.take()
        history = deaths(second.headers)
        assert history == [(name("wait"), "expired", 1), (work.name, "rejected", 1)], history


def ttl() -> None:
    with opened() as connection:
        dead = queue(connection, "dead")
        inbox = Inbox(connection, dead, no_ack=True)
        to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.name}
        send(connection, queue(connection, "own", queue_arguments=to_dead).name, "own", expiration=0.1)
        assert inbox.bodies() == ["own"]
        send(connection, queue(connection, "all", queue_arguments=to_dead, message_ttl=0.2).name, "all")
        assert inbox.bodies() == ["all"]


def priority() -> None:
    with opened() as connection:
        q = queue(connection, "priority", max_priority=5)
        for number in (1, 5, 3):
            send(connection, q.name, str(number), priority=number)
        assert Inbox(connection, q, no_ack=True).bodies(3) == ["5", "3", "1"]


def rpc() -> None:
    with opened() as server, opened() as client:
        q = queue(server, "rpc")
        questions = Inbox(server, q, no_ack=True)
        # The question has to leave by the channel that consumes the answers.
        with Connection(URL) as connection:
            channel = connection.channel()
            replies: list[Message] = []
            Consumer(
                channel, [Queue("amq.rabbitmq.reply-to", no_declare=True)], on_message=replies.append, no_ack=True
            ).consume()
            Producer(channel).publish(
                "question", routing_key=q.name, reply_to="amq.rabbitmq.reply-to", correlation_id="7"
            )
            [question] = questions.take()
            asked = question.properties
            send(client, asked["reply_to"], question.payload.upper(), correlation_id=asked["correlation_id"])
            while not replies:
                connection.drain_events(timeout=PATIENCE_S)
            assert (replies[0].body, replies[0].properties["correlation_id"]) == ("QUESTION", "7")


def server_named() -> None:
    with opened() as connection, opened() as other:
        q = Queue(exclusive=True)(connection.default_channel)
        q.declare()
        assert q.name.startswith("amq.gen-"), q.name
        try:
            Consumer(other, [Queue(q.name, no_declare=True)], on_message=print).consume()
        except amqp.ResourceLocked:
            pass
        else:
            raise AssertionError("not refused with 405")


def cancel() -> None:
    with opened() as connection:
        q = queue(connection, "cancel")
        inbox = Inbox(connection, q)
        connection.channel().queue_delete(q.name)
        try:
            inbox.take()
        except amqp.ConsumerCancelled:
            pass
        else:
            raise AssertionError("the client reported nothing")


def stream() -> None:
    with opened() as connection:
        q = Queue(name("stream"), queue_arguments={"x-queue-type": "stream"})(connection.default_channel)
        q.declare()
        for number in range(10):
            send(connection, q.name, str(number))
        for offset, expected in (("first", ["0", "1", "2"]), (7, ["7", "8", "9"])):
            with opened() as reader:
                again = Queue(q.name, no_declare=True, consumer_arguments={"x-stream-offset": offset})
                assert Inbox(reader, again, prefetch_count=10).bodies(3) == expected
        q.delete()


def large() -> None:
    with opened() as connection:
        q = queue(connection, "large")
        body = "0123456789abcdef" * (1 << 20)
        send(connection, q.name, body)
        assert Inbox(connection, q, no_ack=True).bodies() == [body]


def tls() -> None:
    url = TLS_URL.replace("amqps:", "amqp:")
    trusting = {"ca_certs": CA_FILE, "cert_reqs": ssl.CERT_REQUIRED, "server_hostname": "localhost"}
    with Connection(url, ssl=trusting) as connection:
        connection.connect()
    try:
        Connection(url, ssl={"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": "localhost"}).connect()
    except ssl.SSLCertVerificationError:
        pass
    else:
        raise AssertionError("connected without the authority")


def wrong_password() -> None:
    try:
        Connection(WRONG_URL).connect()
    except amqp.AccessRefused as error:
        assert error.reply_code == 403, error
    else:
        raise AssertionError("not refused")


def forced_close() -> None:
    """As its users do: what fails because of the connection is done again on a new one."""
    with Connection(URL) as connection:
        q = Queue(name("forced_close"))
        connection.connect()
        ask("CLOSE")
        try:
            connection.drain_events(timeout=PATIENCE_S)
        except amqp.ConnectionForced as error:
            assert error.reply_code == 320, error
        else:
            raise AssertionError("the client reported nothing")
        again = connection.ensure(connection, lambda: q(connection.default_channel).declare(), max_retries=3)
        assert again() == q.name
        q(connection.default_channel).delete()


def reconnect() -> None:
    with opened() as connection:
        q = Queue(name("reconnect"))
        q(connection.default_channel).declare()
        send(connection, q.name, "kept", delivery_mode=2)
        ask("RESTART")
        try:
            connection.drain_events(timeout=PATIENCE_S)
        except connection.recoverable_connection_errors:
            pass
        else:
            raise AssertionError("the client did not report the lost connection")
        connection.ensure_connection(max_retries=3)
        assert Inbox(connection, q, no_ack=True).bodies() == ["kept"]
        q(connection.default_channel).delete()


SCENARIOS = (
    connect, topology, confirms, returns, consume, requeue, dead_letter, ttl, priority, rpc, server_named, cancel,
    stream, large, tls, wrong_password, forced_close, reconnect,
)  # fmt: skip

main({scenario.__name__: scenario for scenario in SCENARIOS})
