"""RabbitMQ's plugin and the broker ask one service the same questions, and refuse with the same texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pika
import pika.exceptions
import pytest

from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import RabbitMQ
from tests.auth_service import KINDS, AuthService
from tests.running import RunningServer

VERSION = "4.0"


def rule(kind: str, query: dict[str, str]) -> str:
    if query["username"] == "berta" or query.get("vhost") == "closed" or "no" in query.values():
        return "deny"
    return "allow administrator  monitoring" if kind == "user" else "Allow"


def connect(port: int, name: str = "anna", vhost: str = "/") -> pika.BlockingConnection:
    credentials = pika.PlainCredentials(name, "se cret&ü")
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, vhost, credentials))


def answers(port: int) -> list[str]:
    """Return the texts of what a client with permissions of the service may not do."""
    texts = []

    def attempt(call: Callable[[], object]) -> None:
        try:
            call()
        except pika.exceptions.AMQPError as error:
            texts.append(str(error))

    with connect(port) as connection:
        channel = connection.channel()
        channel.exchange_declare("topics", "topic", durable=True)
        channel.queue_declare("one", durable=True, arguments={"x-dead-letter-exchange": "dead"})
        channel.queue_declare("one", passive=True)
        channel.queue_bind("one", "topics", "a.#")
        for _ in range(2):
            channel.basic_publish("topics", "a.b c", b"1")
            channel.basic_publish("", "one", b"1")
        channel.basic_get("one")
        channel.queue_purge("one")
        attempt(lambda: connection.channel().queue_declare("no", durable=True))
        attempt(lambda: connection.channel().queue_bind("one", "topics", "no"))
        attempt(lambda: connection.channel().exchange_delete("no"))
        refused = connection.channel()
        refused.confirm_delivery()
        attempt(lambda: refused.basic_publish("topics", "no", b"1"))
        connection.channel().queue_delete("one")
    attempt(lambda: connect(port, "berta"))
    attempt(lambda: connect(port, vhost="closed"))
    return texts


@pytest.mark.verify
@pytest.mark.timeout(300)
def test_rabbitmq_asks_the_same_and_refuses_alike(tmp_path: Path) -> None:
    oracle = ORACLES[VERSION]
    if oracle.installed() is None:
        pytest.skip(f"needs RabbitMQ {VERSION}")
    with AuthService(rule) as service:
        settings = [f"auth_http.{kind}_path = http://127.0.0.1:{service.port}/auth/{kind}" for kind in KINDS]
        # Its Erlang reads the system's certificates even for HTTP, and Debian's root has none.
        settings += ["auth_backends.1 = http", "auth_http.ssl_options.verify = verify_none"]
        rabbitmq = RabbitMQ(tmp_path, plugins=("rabbitmq_auth_backend_http",), settings=tuple(settings), oracle=oracle)
        rabbitmq.start()
        try:
            expected, asked = answers(rabbitmq.port), service.lines.copy()
        finally:
            rabbitmq.stop()
        service.lines.clear()
        with RunningServer(**service.settings(), compat=VERSION) as running:
            assert answers(running.port) == expected
        assert service.lines == asked
        assert len(expected) == 6
