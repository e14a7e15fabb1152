"""Requests to the HTTP API of a broker, and the replies."""

from __future__ import annotations

import base64
import http.client
import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from compat.brokers import AmqpBroker
from compat.oracle.suite import Answer
from compat.oracles.rabbitmq import RabbitMQ

TIMEOUT_S = 30.0


class Ask(NamedTuple):
    """One request, below `/api/`.

    The body is sent as JSON unless it is `bytes`. `who` is the user, whose password is the same.
    """

    method: str
    path: str
    body: object = None
    who: str = "guest"

    @property
    def octets(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return b"" if self.body is None else json.dumps(self.body).encode()

    @property
    def title(self) -> str:
        """Return the request's name in records and test ids."""
        sent = self.octets.decode("utf-8", "backslashreplace")
        words = [
            self.method,
            self.path,
            *([sent] if sent else []),
            *([f"as {self.who}"] if self.who != "guest" else []),
        ]
        return re.sub(r"(.)\1{20,}", lambda run: f"{run[1]}…{len(run[0])}", " ".join(words))


def get(path: str, who: str = "guest") -> Ask:
    return Ask("GET", path, None, who)


def put(path: str, body: object = None, who: str = "guest") -> Ask:
    return Ask("PUT", path, body, who)


def post(path: str, body: object = None, who: str = "guest") -> Ask:
    return Ask("POST", path, body, who)


def delete(path: str, who: str = "guest") -> Ask:
    return Ask("DELETE", path, None, who)


def options(path: str) -> Ask:
    return Ask("OPTIONS", path)


def titled(asks: Iterable[Ask]) -> dict[str, Ask]:
    """Return requests by title; repeated ones are numbered."""
    found: dict[str, Ask] = {}
    counts = Counter[str]()
    for ask in asks:
        counts[ask.title] += 1
        found[ask.title if counts[ask.title] == 1 else f"{ask.title} ({counts[ask.title]})"] = ask
    return found


class Reply(NamedTuple):
    """A reply; its value is decoded JSON, or text."""

    status: int
    value: Answer
    headers: dict[str, str]


class Api:
    """The HTTP API of a running broker."""

    def __init__(self, broker: AmqpBroker | RabbitMQ) -> None:
        self.broker = broker
        self.port = broker.management_port

    def ask(self, question: Ask, **headers: str) -> Reply:
        """Send a request on a new connection. Raise TimeoutError for a silent broker."""
        credentials = base64.b64encode(f"{question.who}:{question.who}".encode()).decode()
        sent = {"Content-Type": "application/json", "Authorization": f"Basic {credentials}", **headers}
        connection = http.client.HTTPConnection(self.broker.host, self.port, timeout=TIMEOUT_S)
        try:
            connection.request(question.method, f"/api/{question.path}", question.octets, sent)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        return Reply(response.status, _value(text), {name.lower(): value for name, value in response.headers.items()})

    def get(self, path: str) -> Answer:
        reply = self.ask(get(path))
        assert reply.status == 200, reply
        return reply.value

    @property
    def node(self) -> str:
        """Return the name of the broker's node."""
        return str(self.get("overview?columns=node")["node"])


def _value(text: bytes) -> Answer:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text.decode("utf-8", "replace")
