"""Rows: what is due at one moment."""

from __future__ import annotations

from typing import Any, Final

from pamqp import commands

from tests.growth.messages import DEAD
from tests.growth.table import Play, Row, row
from tests.growth.verbs import TYPES, Basic, Exchange, Queue, declared, filled, unacked
from tests.growth.world import Client, World

ROWS: Final[list[Row]] = []


def expiring(name: str, queue: dict[str, Any], **properties: Any) -> None:
    """Add a row in which n messages of a queue expire at once."""

    def play(world: World, n: int) -> Play:
        client = world.client()
        declared(client, "dead")
        declared(client, "q", **queue)
        filled(client, "q", n, **properties)
        yield
        world.advance(2000)
        assert world.vhost.queues["q"].ready_count == 0

    ROWS.append(Row(f"messages_expire_in_{name}", play, 150))


for kind in ("classic", "quorum", "priority"):
    expiring(kind, {**TYPES[kind], "x-message-ttl": 1000})
    expiring(f"{kind}_with_dead_letters", {**TYPES[kind], **DEAD, "x-message-ttl": 1000})
    expiring(f"{kind}_each", TYPES[kind], expiration="1000")


@row(ROWS)
def messages_expire_in_many_queues(world: World, n: int) -> Play:
    client = world.client()
    declared(client, *(f"q{number}" for number in range(n)), **{"x-message-ttl": 1000})
    for number in range(n):
        filled(client, f"q{number}", 2)
    yield
    world.advance(2000)
    assert world.vhost.queues["q0"].ready_count == 0


@row(ROWS)
def queues_expire(world: World, n: int) -> Play:
    client = world.client()
    declared(client, *(f"q{number}" for number in range(n)), **{"x-expires": 1000})
    yield
    world.advance(5000)
    assert not world.vhost.queues


@row(ROWS)
def a_queue_with_many_messages_expires(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "q", **{"x-expires": 1000})
    filled(client, "q", n)
    yield
    world.advance(5000)
    assert not world.vhost.queues


@row(ROWS)
def delayed_messages_are_due(world: World, n: int) -> Play:
    client = world.client()
    arguments: dict[str, Any] = {"x-delayed-type": "direct"}
    client.call(Exchange.Declare(exchange="x", exchange_type="x-delayed-message", arguments=arguments))
    declared(client, "q")
    client.call(Queue.Bind(queue="q", exchange="x", routing_key="q"))
    for _ in range(n):
        client.publish("q", b"m", exchange="x", headers={"x-delay": 1000})
    yield
    world.advance(2000)
    assert world.vhost.queues["q"].ready_count == n


@row(ROWS)
def clients_miss_heartbeats(world: World, n: int) -> Play:
    for _ in range(n):
        world.client(heartbeat=1)
    yield
    world.advance(10_000)
    assert not world.broker.connections


@row(ROWS)
def clients_do_not_log_in(world: World, n: int) -> Play:
    clients = [Client(world, "127.0.0.1") for _ in range(n)]
    for client in clients:
        client.send_bytes(b"AMQP\x00\x00\x09\x01")
    yield
    world.advance(60_000)
    assert all(client.is_dropped for client in clients)


@row(ROWS)
def consumers_do_not_acknowledge(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "q")
    filled(client, "q", n)
    for number in range(n):
        client.open_channel(number + 2)
        client.ignore(Basic.Qos(prefetch_count=1), channel=number + 2)
        client.ignore(Basic.Consume(queue="q", consumer_tag="c"), channel=number + 2)
    yield
    world.advance(32 * 60_000)
    assert not client.session.channels.keys() - {1}


@row(ROWS)
def a_consumer_does_not_acknowledge_many(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "q")
    unacked(client, "q", n)
    yield
    world.advance(32 * 60_000)
    assert not client.session.channels


def late(name: str, **queue: Any) -> None:
    """Add a row in which n deliveries of a quorum queue time out at once (RabbitMQ 4.3)."""

    def play(world: World, n: int) -> Play:
        client = world.client()
        declared(client, "q", **TYPES["quorum"], **queue)
        unacked(client, "q", n)
        yield
        world.advance(32 * 60_000)
        assert world.vhost.queues["q"].ready_count == n

    ROWS.append(Row(name, play, 200, world=lambda n: World(compat="4.3")))


late("deliveries_of_a_quorum_queue_time_out")
late("deliveries_of_a_quorum_queue_time_out_exactly", **{"x-consumer-timeout": 1_800_000})


@row(ROWS)
def a_stream_retains_for_a_time(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "q", **TYPES["stream"], **{"x-max-age": "1s", "x-stream-max-segment-size-bytes": 100})
    filled(client, "q", n, b"m" * 100)
    yield
    world.advance(10_000)
    filled(client, "q", 1)


@row(ROWS)
def an_alarm_beside_many_connections(world: World, n: int) -> Play:
    for _ in range(n):
        world.client()
    yield
    world.turn(world.broker.set_alarm, "memory", True)
    world.turn(world.broker.set_alarm, "memory", False)


@row(ROWS)
def an_alarm_with_many_blocked_publishers(world: World, n: int) -> Play:
    clients = [world.client() for _ in range(n)]
    declared(clients[0], "q")
    world.broker.set_alarm("memory", True)
    for client in clients:
        client.publish("q", b"m")
    yield
    world.turn(world.broker.set_alarm, "memory", False)
    world.settle()
    assert world.vhost.queues["q"].ready_count == n


@row(ROWS)
def memory_becomes_short_beside_many_queues(world: World, n: int) -> Play:
    client = world.client()
    declared(client, *(f"q{number}" for number in range(n)))
    yield
    world.turn(world.broker.page, True)
    world.turn(world.broker.page, False)


@row(ROWS)
def a_day_passes_beside_many_objects(world: World, n: int) -> Play:
    client = world.client(heartbeat=0)
    declared(client, *(f"q{number}" for number in range(n)))
    for _ in range(n):
        world.client(heartbeat=0)
    client.send(commands.Basic.Consume(queue="q0", consumer_tag="c"))
    yield
    world.advance(3600_000)


@row(ROWS)
def remembered_headers_expire(world: World, n: int) -> Play:
    client = world.client()
    arguments: dict[str, Any] = {"x-cache-size": n, "x-cache-ttl": 1000}
    client.call(Exchange.Declare(exchange="x", exchange_type="x-message-deduplication", arguments=arguments))
    for number in range(n):
        client.publish("q", b"m", exchange="x", headers={"x-deduplication-header": number})
    yield
    world.advance(2000)
    client.publish("q", b"m", exchange="x", headers={"x-deduplication-header": "new"})
    assert world.vhost.exchanges["x"].entry_count < n
