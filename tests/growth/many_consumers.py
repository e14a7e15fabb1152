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


@row(ROWS)
def single_active_consumers_leave(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "q", **{"x-single-active-consumer": True})
    for number in range(n):
        client.ignore(Basic.Consume(queue="q", consumer_tag=f"c{number}"))
    filled(client, "q", 5)
    yield
    for number in range(n):
        client.send(Basic.Cancel(consumer_tag=f"c{number}"))


@row(ROWS)
def queues_go_with_the_last_consumers_of_a_connection(world: World, n: int) -> Play:
    client = world.client()
    for number in range(n):
        client.call(Queue.Declare(queue=f"q{number}", auto_delete=True))
        client.ignore(Basic.Consume(queue=f"q{number}", consumer_tag=f"c{number}"))
    yield
    client.disconnect()
    assert not world.vhost.queues


@row(ROWS)
def acks_beside_many_consumers_that_share_a_limit(world: World, n: int) -> Play:
    client, reader = world.client(), world.client()
    declared(client, *(f"q{number}" for number in range(n)))
    reader.ignore(Basic.Qos(prefetch_count=1, global_=True))
    for number in range(n):
        reader.ignore(Basic.Consume(queue=f"q{number}", consumer_tag=f"c{number}"))
        filled(client, f"q{number}", 1)
    yield
    for number in range(10):
        reader.send(Basic.Ack(delivery_tag=number + 1))


@row(ROWS, 40)
def a_publish_through_a_lattice_of_exchanges(world: World, n: int) -> Play:
    """There are 2 ** n ways, and each exchange is passed once."""
    client = world.client()
    client.call(Exchange.Declare(exchange="a0", exchange_type="fanout"))
    for number in range(n):
        client.call(Exchange.Declare(exchange=f"a{number + 1}", exchange_type="fanout"))
        for side in ("b", "c"):
            client.call(Exchange.Declare(exchange=f"{side}{number}", exchange_type="fanout"))
            client.call(Exchange.Bind(destination=f"{side}{number}", source=f"a{number}"))
            client.call(Exchange.Bind(destination=f"a{number + 1}", source=f"{side}{number}"))
    yield
    client.publish("k", b"m", exchange="a0")
