"""Asking handlers of the management API as its shell does, without HTTP: a broker in memory and values."""

from __future__ import annotations

import itertools
import re
from typing import Any
from urllib.parse import unquote

import msgspec

from amqp_broker.broker.access import User
from amqp_broker.broker.broker import Broker
from amqp_broker.config import Config
from amqp_broker.management.access import may
from amqp_broker.management.node import Listener, Node
from amqp_broker.management.request import Answer, Request, Resource, refusal_of
from amqp_broker.management.resources import RESOURCES

NOW = 1_700_000_000_000


class StillNode(Node):
    """A node on which nothing happens."""

    started_at_ms = NOW

    def __init__(self) -> None:
        self.time = NOW
        self.flush_count = 0

    def now(self) -> int:
        return self.time

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

    def descriptors(self) -> tuple[int, int]:
        return 10, 1024


class Desk:
    """A broker and who asks it: `desk.get("/api/queues/%2F/q")` is status and value."""

    def __init__(self, **settings: Any) -> None:
        counter = itertools.count()
        self.broker = Broker(Config(**settings), lambda size: next(counter).to_bytes(size, "big"))
        self.broker.now = NOW
        self.broker.add_defaults()
        self.node = StillNode()
        self.user: User = self.broker.users["guest"]

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
        try:
            value = resource.handlers[method](request)
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            return refusal.status, refusal.reason
        answer = value if isinstance(value, Answer) else Answer(200, value)
        return answer.status, msgspec.json.decode(msgspec.json.encode(answer.value))


def find(path: str) -> tuple[Resource, dict[str, str]]:
    """The resource of a path, and its named parts."""
    for resource in RESOURCES:
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", resource.path)
        match = re.fullmatch(pattern, path)
        if match is not None:
            return resource, {name: unquote(part) for name, part in match.groupdict().items()}
    raise AssertionError(f"no resource {path}")
