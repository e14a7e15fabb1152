"""A broker lives through 24 hours in a minute, and must keep nothing of its clients.

python -m tests.soak.day --hours 24 --seed 1
"""

from __future__ import annotations

import gc
import os
import random
import sys
import tempfile
import time
import uuid
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from pamqp import commands

from amqp_broker.cli.shared.http_api import Api, Place
from amqp_broker.server.server import Server
from tests.adversity.watching import MIB, memory_bytes, open_files
from tests.client import Client
from tests.running import RunningServer
from tests.soak.soak import GROWTH_MAX_BYTES, OPEN_FILES_SLACK

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
# Longer than any queue, message or delay lasts.
END_MS = 4 * HOUR_MS
# Objects of one class that caches may have taken since the first hour.
OBJECTS_SLACK = 10
# The same of the cache of property lists, which has 64 KiB at most (`property_shapes.py`).
SHAPES = frozenset(("Traits", "_RigidShape", "_ElasticShape", "_Segment"))
SHAPES_SLACK = 100
CONSUMERS = 10
KEYS = 50


@dataclass
class Count:
    """Resources of the process while no client is connected and everything has expired."""

    memory_bytes: int
    open_files: int
    timers: int
    # Live objects of the broker's classes, by name of the class.
    objects: Counter[str]


@dataclass
class Day:
    counts: list[Count] = field(default_factory=list)
    connections: int = 0
    queues: int = 0
    messages: int = 0
    consumers: int = 0


def live(folder: Path, hours: int, seed: int) -> Day:
    """Let a broker with a store in the folder live for some hours; it is counted after each."""
    day, dice = Day(), random.Random(seed)
    with RunningServer(data_dir=str(folder), management=True, ephemeral=False) as running:
        for _ in range(hours):
            hour(running, day, dice)
            day.counts.append(count(running))
    return day


def hour(running: RunningServer, day: Day, dice: random.Random) -> None:
    """Work for an hour. A client that stays keeps a message unsettled until the broker closes its channel."""
    shift = str(dice.getrandbits(64))

    ask(running, "PUT", f"vhosts/{shift}")
    with Client(running.port).open(vhost=shift) as idle:
        idle.declare("idle", durable=True)
        idle.publish("idle", b"x")
        idle.consume("idle")
        for minute in range(60):
            change_policies(running, shift, dice)
            minute_of_a_client(running.port, shift if minute % 2 else "/", day, dice)
            running.advance(MINUTE_MS)
    running.until(lambda server: not server.broker.connections)
    ask(running, "DELETE", f"vhosts/{shift}")
    # All else expires now. Deadlines of real time pass as well.
    running.advance(END_MS)
    running.live_through(HOUR_MS)


def ask(running: RunningServer, method: str, path: str, body: Any = None) -> None:
    """Change something over the HTTP API."""
    login = "Basic " + b64encode(b"guest:guest").decode()
    place = Place(host="127.0.0.1", port=running.server.ports["management"], authorization=login)
    answer = Api(place, 60).ask(method, f"/api/{path}", body)
    assert answer.is_ok or answer.status == 404, answer.reason


def change_policies(running: RunningServer, vhost: str, dice: random.Random) -> None:
    """Set one of a few policies anew, or clear it."""
    path = f"policies/{vhost}/{dice.randrange(3)}"
    if dice.random() < 0.3:
        ask(running, "DELETE", path)
    else:
        definition = {"message-ttl": dice.randrange(1, 2 * HOUR_MS), "max-length": dice.randrange(1, 100)}
        ask(running, "PUT", path, {"pattern": "^day", "definition": definition, "apply-to": "queues"})


def minute_of_a_client(port: int, vhost: str, day: Day, dice: random.Random) -> None:
    """Declare a queue that will expire. Publish with unique routing keys, consume some messages, and leave."""
    client = Client(port).open(vhost=vhost)
    name, kind = f"day-{dice.getrandbits(64)}", dice.choice(["classic", "quorum", "priority", "exclusive"])
    arguments: dict[str, Any] = {"x-expires": dice.randrange(MINUTE_MS, 2 * HOUR_MS)}
    if kind == "priority":
        arguments["x-max-priority"] = 5
    elif kind == "quorum":
        arguments["x-queue-type"] = "quorum"
    arguments["x-dead-letter-exchange"] = "amq.fanout"
    client.declare(name, durable=kind != "exclusive", exclusive=kind == "exclusive", arguments=arguments)
    client.call(commands.Queue.Bind(queue=name, exchange="amq.topic", routing_key=f"{name}.#"))
    if dice.random() < 0.5:
        client.call(commands.Confirm.Select())
    for number in range(KEYS):
        expiration = str(dice.randrange(3 * HOUR_MS)) if dice.random() < 0.5 else None
        properties = {"expiration": expiration, "delivery_mode": dice.choice([1, 2]), **application_properties(dice)}
        body = dice.randbytes(int(dice.lognormvariate(5, 1.2)))
        client.publish(f"{name}.{number}", body, exchange="amq.topic", **properties)
        client.publish(f"nobody.{name}.{number}", b"", exchange="amq.topic")
    client.send(commands.Basic.Qos(prefetch_count=3))
    for number in range(CONSUMERS):
        client.send(commands.Basic.Consume(queue=name, consumer_tag=str(number)))
        client.send(commands.Basic.Cancel(consumer_tag=str(number), nowait=True))
    client.send(commands.Basic.Recover(requeue=True))
    client.send(commands.Queue.Declare(queue=name, passive=True))
    while not isinstance(answer := client.next()[0], commands.Queue.DeclareOk):
        assert not isinstance(answer, (commands.Channel.Close, commands.Connection.Close)), answer.reply_text
    day.connections += 1
    day.queues += 1
    day.messages += 2 * KEYS
    day.consumers += CONSUMERS
    client.reset() if dice.random() < 0.5 else client.close()


def application_properties(dice: random.Random) -> dict[str, Any]:
    """Return the properties of an application, with ids of their own: Celery, Spring, MassTransit or Node."""
    new_id = str(uuid.UUID(int=dice.getrandbits(128), version=4))
    trace = f"00-{dice.getrandbits(128):032x}-{dice.getrandbits(64):016x}-01"
    headers: dict[str, Any]
    match dice.randrange(4):
        case 0:
            headers = {
                **dict.fromkeys(("parent_id", "group", "eta", "expires", "shadow", "stamped_headers")),
                "lang": "py",
                "task": "orders.tasks.pay",
                "id": new_id,
                "root_id": new_id,
                "timelimit": [None, None],
                "retries": dice.randrange(3),
                "argsrepr": f"({dice.randrange(10**6)},)",
                "kwargsrepr": "{}",
                "origin": f"gen{dice.randrange(9)}@worker",
                "ignore_result": False,
                "stamps": {},
            }
            return {"headers": headers, "correlation_id": new_id, "reply_to": "results", "content_encoding": "utf-8"}
        case 1:
            headers = {"__TypeId__": "org.example.Order", "traceparent": trace, "b3": trace[3:52], "attempt": 1}
            return {"headers": headers, "content_type": "application/json", "message_id": new_id}
        case 2:
            headers = {"MT-Activity-Id": trace, "Content-Type": "application/vnd.masstransit+json", "publishId": new_id}
            return {"headers": headers, "message_id": new_id, "correlation_id": new_id}
        case _:
            headers = {"traceparent": trace, "x-retry": dice.randrange(9), "tenant": f"t{dice.randrange(1000)}"}
            return {"headers": headers, "message_id": new_id, "app_id": "shop", "message_type": "order.created"}


def count(running: RunningServer) -> Count:
    """Count what the process holds when all clients are gone, and all changes are in the store."""
    running.until(lambda server: not server.transports and not server.broker.journal.has_work)
    running.until(
        lambda server: server.store is not None and server.store._writer is not None and server.store._writer.is_idle
    )

    def look(server: Server) -> Count:
        gc.collect()
        objects = Counter(
            type(one).__qualname__ for one in gc.get_objects() if str(type(one).__module__).startswith("amqp_broker.")
        )
        timers = {id(one): len(one._heap) for one in (server.broker.timers, server.broker.real_timers)}
        return Count(memory_bytes(os.getpid(), "RssAnon"), open_files(os.getpid()), sum(timers.values()), objects)

    return running.ask(look)


def leaks(first: Count, last: Count) -> Iterator[str]:
    """Return sentences about what was not there after the first hour."""
    for name, number in sorted((last.objects - first.objects).items()):
        if number > (SHAPES_SLACK if name in SHAPES else OBJECTS_SLACK):
            yield f"{number} more objects {name}"
    if last.timers > first.timers + OBJECTS_SLACK:
        yield f"timers were left: {first.timers}, at the end {last.timers}"
    if last.open_files > first.open_files + OPEN_FILES_SLACK:
        yield f"files were left open: {first.open_files}, at the end {last.open_files}"
    if last.memory_bytes > first.memory_bytes + GROWTH_MAX_BYTES:
        yield f"memory grew from {first.memory_bytes // MIB} to {last.memory_bytes // MIB} MiB"


@click.command()
@click.option("--hours", default=24, show_default=True, help="Hours of the broker's clock.")
@click.option("--seed", default=1, show_default=True)
def main(hours: int, seed: int) -> None:
    """Let a broker live for a day in minutes, and check that it keeps nothing."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        day = live(Path(folder, "data"), hours, seed)
    click.echo(
        f"{hours} hours in {time.monotonic() - began:.0f} s: {day.connections} connections, {day.queues} queues, "
        f"{day.messages} messages, {day.consumers} consumers"
    )
    for each in (day.counts[0], day.counts[-1]):
        click.echo(
            f"{each.memory_bytes / MIB:.1f} MiB, {each.open_files} open files, {each.timers} timers, "
            f"{each.objects.total()} objects"
        )
    found = list(leaks(day.counts[0], day.counts[-1]))
    for one in found:
        click.echo(one, err=True)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
