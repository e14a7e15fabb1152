"""Asking handlers of the management API as its shell does, without HTTP: a broker in memory and values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from pamqp import commands

from amqp_broker.broker.access import Permission, User
from amqp_broker.management import json
from amqp_broker.management.access import may
from amqp_broker.management.listing import selected
from amqp_broker.management.node import Listener, Node, ShovelStatus
from amqp_broker.management.paths import Paths
from amqp_broker.management.rates import Rates
from amqp_broker.management.request import Answer, Deferred, Request, Resource, refusal_of
from amqp_broker.management.resources import RESOURCES
from tests.peer import Lab

NOW = 1_700_000_000_000


class StillNode(Node):
    """A node on which nothing happens."""

    started_at_ms = NOW

    def __init__(self) -> None:
        self.time = NOW
        self.flush_count = 0

    def now(self) -> int:
        return self.time

    def real_now(self) -> int:
        return NOW

    def is_frozen(self) -> bool:
        return False

    def flush(self) -> None:
        self.flush_count += 1

    def listeners(self) -> list[Listener]:
        return [Listener("amqp", "127.0.0.1", 5672)]

    def memory_used(self) -> int:
        return 30_000_000

    def memory_limit(self) -> int:
        return 1_000_000_000

    def disk_free(self) -> int:
        return 9_000_000_000

    def disk_free_limit(self) -> int:
        return 50_000_000

    def shovels(self) -> list[ShovelStatus]:
        return []

    def process_id(self) -> int:
        return 4711

    def processors(self) -> int:
        return 2

    def descriptors(self) -> tuple[int, int]:
        return 10, 1024


class Desk:
    """A broker and who asks it: `desk.get("/api/queues/%2F/q")` is status and value.

    `lab.connect()` is a client of that broker.
    """

    def __init__(self, **settings: Any) -> None:
        self.lab = Lab(**settings)
        self.broker = self.lab.broker
        self.broker.now = NOW
        self.node = StillNode()
        self.node.rates = Rates(self.broker)
        self.user: User = self.broker.users["guest"]

    def be(self, *tags: str, **permission: str) -> User:
        """Ask as another user from now on, with these tags and, if any, permissions in vhost "/"."""
        self.user = self.broker.add_user("other", "other", tags=frozenset(tags))
        if permission:
            self.broker.set_permission(self.user, "/", Permission(**permission))
        return self.user

    def get(self, path: str, **query: str) -> tuple[int, Any]:
        return self.ask("GET", path, query=query)

    def ask(
        self, method: str, path: str, body: Any = b"", query: dict[str, str] | None = None, **headers: str
    ) -> tuple[int, Any]:
        """Status and JSON value of an answer; the value of an error is its reason."""
        resource, parts = find(path)
        if not may(self.user, resource.needs):
            return 401, "Not " + resource.needs
        request = Request(
            self.broker,
            self.node,
            self.user,
            method,
            parts,
            query or {},
            headers,
            body if isinstance(body, bytes) else msgspec.json.encode(body),
        )
        self.broker.counters.collect()
        try:
            value = resource.handlers[method](request)
            if isinstance(value, Deferred):
                # As if its time were over.
                value = value.answer()
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            return refusal.status, refusal.reason
        if method == "GET":
            value = selected(request.query, value)
        answer = value if isinstance(value, Answer) else Answer(200, value)
        return answer.status, msgspec.json.decode(json.encode(answer.value))


PATHS = Paths(RESOURCES)


def find(path: str) -> tuple[Resource, dict[str, str]]:
    """The resource of a path, and its named parts."""
    found = PATHS.find(path)
    assert found is not None, f"no resource {path}"
    return found


def declared_anew(desk: Desk) -> Iterator[None]:
    """Twice: one channel publishes to an exchange x and gets from a queue q, which are gone at the next step."""
    peer = desk.lab.connect()
    for _ in range(2):
        peer.call(commands.Exchange.Declare(exchange="x", exchange_type="fanout"))
        peer.declare("q")
        peer.call(commands.Queue.Bind(queue="q", exchange="x"))
        peer.publish("", b"m", exchange="x")
        assert peer.get("q")
        yield
        peer.call(commands.Queue.Delete(queue="q"))
        peer.call(commands.Exchange.Delete(exchange="x"))
