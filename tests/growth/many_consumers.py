"""Rows: a stream with many consumers, and an exchange with a long history."""

from __future__ import annotations

from typing import Any, Final

from tests.growth.messages import fanned_out
from tests.growth.table import Play, Row, row
from tests.growth.verbs import TYPES, Basic, Exchange, Queue, declared, filled
from tests.growth.world import World
from tests.peer import publish_bytes

ROWS: Final[list[Row]] = []


# A consumer that is served anyway takes a chunk, which is some thousand lines.
@row(ROWS, unevenness=5000)
def a_stream_with_many_consumers_grows(world: World, n: int) -> Play:
    client, reader = world.client(), world.client()
    declared(client, "s", **TYPES["stream"])
    reader.ignore(Basic.Qos(prefetch_count=100))
    for number in range(n):
        reader.ignore(Basic.Consume(queue="s", consumer_tag=f"c{number}"))
    reader.is_reading = True
    yield
    filled(client, "s", 20)
    world.settle()
    assert len(reader.bodies()) == 20 * n


def historical(n: int, world: World) -> Any:
    client = world.client()
    arguments: dict[str, Any] = {"x-recent-history-length": 100_000}
    client.call(Exchange.Declare(exchange="h", exchange_type="x-recent-history", arguments=arguments))
    client.send_bytes(publish_bytes("k", b"m", exchange="h") * n)
    return client


@row(ROWS)
def a_queue_is_bound_to_a_long_history(world: World, n: int) -> Play:
    client = historical(n, world)
    declared(client, "q")
    yield
    client.send(Queue.Bind(queue="q", exchange="h", routing_key=""))
    world.settle()
    assert world.vhost.queues["q"].ready_count == n


# A message goes to all queues of the exchange in one turn.
@row(ROWS, 30, unevenness=6000)
def an_exchange_with_many_queues_is_bound_to_a_history(world: World, n: int) -> Play:
    client = historical(40, world)
    fanned_out(client, n)
    yield
    client.send(Exchange.Bind(destination="x", source="h", routing_key=""))
    world.settle()
    assert world.vhost.queues["q0"].ready_count == 40
