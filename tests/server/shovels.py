"""Helpers for tests of shovels."""

from __future__ import annotations

from typing import Any

from amqp_broker.server.server import Server
from tests.client import Client
from tests.running import RunningServer

COUNT = 3000


def shovel(running: RunningServer, name: str = "s", **given: Any) -> None:
    value = {"src-uri": "amqp://", **{key.replace("_", "-"): item for key, item in given.items()}}
    running.ask(lambda server: server.broker.vhosts["/"].parameters.set("shovel", name, value))


def depth(server: Server, name: str) -> int:
    queue = server.broker.vhosts["/"].queues.get(name)
    return -1 if queue is None else queue.ready_count


def fill(running: RunningServer, name: str, count: int = COUNT, message: bytes = b"m") -> None:
    with Client(running.port).open() as client:
        client.declare(name, durable=True)
        for _ in range(count):
            client.publish(name, message)
        client.sync()


def states(running: RunningServer) -> list[tuple[str, str]]:
    return running.ask(lambda server: [(one.state, one.reason) for one in server.shovels])
