"""Calls of the handlers of the management API as the application makes them, without HTTP."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import msgspec
from pamqp import commands

from amqp_broker.broker.admin.access import Permission, User
from amqp_broker.broker.scheduling.portions import Steps, finished
from amqp_broker.management.api_sections import all_endpoints
from amqp_broker.management.http import json
from amqp_broker.management.http.answers import Answer, Deferred, refusal_of
from amqp_broker.management.http.auth import require_tag
from amqp_broker.management.http.columns import selected
from amqp_broker.management.http.endpoint import Endpoint
from amqp_broker.management.http.paths import Paths
from amqp_broker.management.http.request import Request
from amqp_broker.management.node.node import Alarm, Listener, Node, ShovelStatus
from amqp_broker.management.node.rates import Rates
from tests.peer import Lab

NOW = 1_700_000_000_000
NO_COMMANDS = "a test that commands the node implements the method"


class StillNode(Node):
    """A node on which nothing happens."""

    started_at_ms = NOW

    def __init__(self) -> None:
        self.time = NOW
        self.flush_count = 0

    def now(self) -> int:
        return self.time

    def host_name(self) -> str:
        return "machine"

    def real_now(self) -> int:
        return NOW

    def clock_offset(self) -> int:
        return self.now() - NOW

    def is_frozen(self) -> bool:
        return False

    def clock_moved_at_ms(self) -> int | None:
        return None

    def alarms(self) -> list[Alarm]:
        return []

    def flush(self) -> None:
        self.flush_count += 1

    def listeners(self) -> list[Listener]:
        return [Listener("amqp", "127.0.0.1", 5672)]

    def memory_used(self) -> int:
        return 30_000_000

    def memory_setting(self) -> str:
        return "0.6"

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

    def data_folder(self) -> str:
        return ""

    def config_files(self) -> Sequence[str]:
        return ("/etc/rabbitmq/rabbitmq.conf",)

    def restart_shovel(self, vhost: str, name: str) -> bool:
        return False

    def freeze(self) -> None:
        raise AssertionError(NO_COMMANDS)

    def resume(self) -> None:
        raise AssertionError(NO_COMMANDS)

    def stop(self) -> None:
        raise AssertionError(NO_COMMANDS)

    def stop_app(self) -> None:
        raise AssertionError(NO_COMMANDS)

    def start_app(self) -> None:
        raise AssertionError(NO_COMMANDS)

    def suspend_listeners(self) -> None:
        raise AssertionError(NO_COMMANDS)

    def resume_listeners(self) -> None:
        raise AssertionError(NO_COMMANDS)

    def advance(self, duration_ms: int) -> None:
        raise AssertionError(NO_COMMANDS)

    def set_memory_limit(self, text: str) -> None:
        raise AssertionError(NO_COMMANDS)

    def set_disk_free_limit(self, text: str) -> None:
        raise AssertionError(NO_COMMANDS)

    def set_alarm(self, resource: str, is_on: bool) -> None:
        raise AssertionError(NO_COMMANDS)

    def watch_disk(self, is_on: bool) -> None:
        raise AssertionError(NO_COMMANDS)

    def set_log_level(self, level: str) -> None:
        raise AssertionError(NO_COMMANDS)


class Desk:
    """A broker and a user who asks it: `desk.get("/api/queues/%2F/q")` is status and value.

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
        self.user = self.broker.users.add("other", "other", tags=tags)
        if permission:
            self.broker.users.set_permission(self.user, "/", Permission(**permission))
        return self.user

    def get(self, path: str, **query: str) -> tuple[int, Any]:
        return self.ask("GET", path, query=query)

    def steps(self, method: str, path: str, body: Any = b"", **query: str) -> Steps[Any]:
        """The steps of a handler, which the test runs."""
        endpoint, parts = find(method, path)
        octets = body if isinstance(body, bytes) else msgspec.json.encode(body)
        steps = endpoint.handler(Request(self.broker, self.node, self.user, method, parts, query, {}, octets))
        assert isinstance(steps, Generator)
        return steps

    def ask(
        self,
        method: str,
        path: str,
        body: Any = b"",
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, Any]:
        """Status and JSON value of an answer; the value of an error is its reason."""
        endpoint, parts = find(method, path)
        request = Request(
            self.broker,
            self.node,
            self.user,
            method,
            parts,
            query or {},
            headers or {},
            body if isinstance(body, bytes) else msgspec.json.encode(body),
        )
        self.broker.collect_counts()
        try:
            require_tag(self.user, endpoint.tag)
            value = endpoint.handler(request)
            if isinstance(value, Generator):
                value = finished(value)
            if isinstance(value, Deferred):
                # As after its timeout.
                value = value.answer()
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            return refusal.status, refusal.reason
        if method == "GET":
            value = finished(selected(request.query, value))
        answer = value if isinstance(value, Answer) else Answer(200, value)
        assert answer.status in endpoint.statuses or answer.status == 503, (
            f"{endpoint} does not declare {answer.status}"
        )
        return answer.status, msgspec.json.decode(json.encode(answer.value))


PATHS = Paths(all_endpoints())


def find(method: str, path: str) -> tuple[Endpoint, dict[str, str]]:
    """Return the endpoint of a path, and the names in it."""
    found = PATHS.find(path)
    assert found is not None, f"no endpoint {path}"
    return found[0][method], found[1]


def declared_anew(desk: Desk) -> Iterator[None]:
    """Twice publish to an exchange x and get from a queue q, which are deleted at the next step."""
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
