"""Rows: each verb of AMQP beside many things that others have made, and on many things."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pamqp import base, commands, frame

from tests.growth.table import Play, Row, row
from tests.growth.world import Client, World
from tests.peer import publish_bytes

ROWS: Final[list[Row]] = []

Basic, Queue, Exchange = commands.Basic, commands.Queue, commands.Exchange
QUORUM: Final[dict[str, Any]] = {"x-queue-type": "quorum"}
TYPES: Final[dict[str, dict[str, Any]]] = {
    "classic": {},
    "quorum": QUORUM,
    "stream": {"x-queue-type": "stream"},
    "priority": {"x-max-priority": 5},
}


def declared(client: Client, *names: str, **arguments: Any) -> None:
    for name in names:
        durable = arguments.get("x-queue-type") in ("quorum", "stream")
        client.call(Queue.Declare(queue=name, durable=durable, arguments=arguments))


def filled(client: Client, queue: str, n: int, body: bytes = b"m", **properties: Any) -> None:
    client.send_bytes(publish_bytes(queue, body, **properties) * n)


def unacked(client: Client, queue: str, n: int) -> None:
    """Let a client have n deliveries, which it does not settle."""
    filled(client, queue, n)
    client.ignore(Basic.Consume(queue=queue, consumer_tag=f"of {queue}"))


def surrounded(world: World, n: int) -> Client:
    """Make n of everything that others can make; the queue `q` and the exchanges belong to the client."""
    client = world.client()
    others = world.client()
    for kind in ("fanout", "topic", "headers", "direct"):
        client.call(Exchange.Declare(exchange=kind, exchange_type=kind))
    declared(client, "q", "empty", "full", "held")
    for number in range(n):
        declared(others, f"q{number}")
        others.call(Queue.Bind(queue=f"q{number}", exchange="topic", routing_key=f"a.{number}"))
        others.call(Queue.Bind(queue="held", exchange="direct", routing_key=f"{number}"))
        others.call(Exchange.Declare(exchange=f"x{number}", exchange_type="direct"))
        others.ignore(Basic.Consume(queue="empty", consumer_tag=f"c{number}"))
        others.open_channel(number + 2)
        world.client()
        world.broker.add_vhost(f"v{number}")
        world.broker.users.add(f"user{number}", "secret")
    filled(others, "full", n)
    unacked(others, "held", n)
    return client


def verb(name: str, *methods: base.Frame, before: Callable[[Client], None] | None = None) -> None:
    def play(world: World, n: int) -> Play:
        client = surrounded(world, n)
        if before is not None:
            before(client)
        yield
        for method in methods:
            client.send(method)
        assert not client.session.state.ignores_input
        assert 1 in client.session.channels or name in ("channel_close",), f"{name} failed"

    ROWS.append(Row(f"{name}_beside_many", play, 30))


def one_unacked(client: Client) -> None:
    client.publish("q", b"m")
    client.ignore(Basic.Get(queue="q"))


def one_ready(client: Client) -> None:
    client.publish("q", b"m")


def in_transaction(client: Client) -> None:
    client.call(commands.Tx.Select())
    client.publish("q", b"m")


verb("queue_declare", Queue.Declare(queue="new"))
verb("queue_declare_again", Queue.Declare(queue="q"))
verb("queue_declare_unnamed", Queue.Declare(queue=""))
verb("queue_declare_quorum", Queue.Declare(queue="new", durable=True, arguments=QUORUM))
verb("queue_declare_stream", Queue.Declare(queue="new", durable=True, arguments=TYPES["stream"]))
verb("queue_bind", Queue.Bind(queue="q", exchange="topic", routing_key="a.#"))
verb("queue_bind_direct", Queue.Bind(queue="q", exchange="direct", routing_key="5"))
verb("queue_unbind", Queue.Unbind(queue="held", exchange="direct", routing_key="5"))
verb("queue_purge", Queue.Purge(queue="q"))
verb("queue_delete", Queue.Delete(queue="q"))
verb("exchange_declare", Exchange.Declare(exchange="new", exchange_type="topic"))
verb("exchange_delete", Exchange.Delete(exchange="headers"))
verb("exchange_bind", Exchange.Bind(destination="fanout", source="direct", routing_key="5"))
verb("exchange_unbind", Exchange.Unbind(destination="fanout", source="direct", routing_key="5"))
verb("basic_qos", Basic.Qos(prefetch_count=5), Basic.Qos(prefetch_count=5, global_=True))
verb("basic_consume", Basic.Consume(queue="q", consumer_tag="c"))
verb("basic_consume_beside_consumers", Basic.Consume(queue="empty", consumer_tag="c"))
verb("basic_cancel", Basic.Consume(queue="empty", consumer_tag="c"), Basic.Cancel(consumer_tag="c"))
verb("basic_get", Basic.Get(queue="q"), before=one_ready)
verb("basic_get_of_many", Basic.Get(queue="full"))
verb("basic_ack", Basic.Ack(delivery_tag=1), before=one_unacked)
verb("basic_nack", Basic.Nack(delivery_tag=1), before=one_unacked)
verb("basic_reject", Basic.Reject(delivery_tag=1, requeue=False), before=one_unacked)
verb("basic_recover", Basic.Recover(requeue=True), before=one_unacked)
verb("basic_recover_async", Basic.RecoverAsync(requeue=True), before=one_unacked)
verb("confirm_select", commands.Confirm.Select())
verb("tx_select", commands.Tx.Select())
verb("tx_commit", commands.Tx.Commit(), before=in_transaction)
verb("tx_rollback", commands.Tx.Rollback(), before=in_transaction)
verb("channel_flow", commands.Channel.Flow(active=True))
verb("channel_close", commands.Channel.Close(reply_code=200, reply_text="", class_id=0, method_id=0))


def publishing(name: str, exchange: str, key: str, **properties: Any) -> None:
    def play(world: World, n: int) -> Play:
        client = surrounded(world, n)
        yield
        for _ in range(3):
            client.publish(key, b"m", exchange=exchange, **properties)

    ROWS.append(Row(f"publish_{name}_beside_many", play, 30))


publishing("by_name", "", "q")
publishing("to_many_messages", "", "full")
publishing("to_many_consumers", "", "empty")
publishing("mandatory", "", "nowhere", mandatory=True)
publishing("to_a_topic_exchange", "topic", "a.5")
publishing("to_a_topic_exchange_without_a_queue", "topic", "b")
publishing("to_a_direct_exchange", "direct", "5")
publishing("to_a_headers_exchange", "headers", "", headers={"a": 1})
publishing("with_a_copy", "", "q", headers={"CC": ["full"]})
publishing("as_user", "", "q", user_id="guest")


@row(ROWS, 30)
def a_login_beside_many(world: World, n: int) -> Play:
    surrounded(world, n)
    yield
    client = Client(world, "127.0.0.1")
    client.send_bytes(b"AMQP\x00\x00\x09\x01")
    client.send(
        commands.Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US"),
        commands.Connection.TuneOk(2047, 131072, 60),
        commands.Connection.Open("/"),
        channel=0,
    )
    client.send(commands.Channel.Open())
    assert client.session.vhost is not None


@row(ROWS, 30)
def a_connection_ends_beside_many(world: World, n: int) -> Play:
    surrounded(world, n)
    one, another = world.client(), world.client()
    yield
    one.send(commands.Connection.Close(200, "", 0, 0), channel=0)
    another.disconnect()
    assert another.session not in world.broker.connections


@row(ROWS, 30)
def connection_update_secret_beside_many(world: World, n: int) -> Play:
    client = surrounded(world, n)
    yield
    client.send(commands.Connection.UpdateSecret("guest", "new"), channel=0)


# Many at once


def each(
    name: str, make: Callable[[int], base.Frame], before: Callable[[Client, int], None] | None = None, n: int = 100
) -> None:
    """Add a row that plays a method for each of n things."""

    def play(world: World, count: int) -> Play:
        client = world.client()
        if before is not None:
            before(client, count)
        yield
        client.send_bytes(b"".join(frame.marshal(make(number), 1) for number in range(count)))
        assert 1 in client.session.channels, f"{name} failed"

    ROWS.append(Row(f"{name}_of_each", play, n))


def queues(client: Client, n: int) -> None:
    declared(client, *(f"q{number}" for number in range(n)))


def with_exchange(kind: str) -> Callable[[Client, int], None]:
    def before(client: Client, n: int) -> None:
        client.call(Exchange.Declare(exchange="x", exchange_type=kind))
        declared(client, "q")
        queues(client, n)

    return before


def bound(kind: str) -> Callable[[Client, int], None]:
    def before(client: Client, n: int) -> None:
        with_exchange(kind)(client, n)
        for number in range(n):
            client.call(Queue.Bind(queue="q", exchange="x", routing_key=f"k.{number}", arguments={"k": number}))

    return before


def with_a_queue(client: Client, n: int) -> None:
    declared(client, "q")


def with_messages(client: Client, n: int) -> None:
    declared(client, "q")
    filled(client, "q", n)


def with_unacked(client: Client, n: int) -> None:
    declared(client, "q")
    unacked(client, "q", n)


def dead_lettering(client: Client, n: int) -> None:
    declared(client, "dead")
    declared(client, "q", **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    unacked(client, "q", n)


def consumers(client: Client, n: int) -> None:
    declared(client, "q")
    for number in range(n):
        client.ignore(Basic.Consume(queue="q", consumer_tag=f"c{number}"))


for kind, arguments in TYPES.items():
    each(
        f"queue_declare_{kind}",
        lambda number, kind=kind, arguments=arguments: Queue.Declare(  # type: ignore[misc]
            queue=f"q{number}", durable=kind in ("quorum", "stream"), arguments=arguments
        ),
    )
each("queue_delete", lambda number: Queue.Delete(queue=f"q{number}"), queues)
each("queue_purge", lambda number: Queue.Purge(queue=f"q{number}"), queues)
each("exchange_declare", lambda number: Exchange.Declare(exchange=f"x{number}", exchange_type="topic"))
for kind in ("direct", "topic", "fanout", "headers"):
    each(
        f"queue_bind_one_{kind}",
        lambda number: Queue.Bind(queue="q", exchange="x", routing_key=f"k.{number}", arguments={"k": number}),
        with_exchange(kind),
    )
    each(
        f"queue_bind_many_{kind}",
        lambda number: Queue.Bind(queue=f"q{number}", exchange="x", routing_key="k.*", arguments={"k": 1}),
        with_exchange(kind),
    )
    each(
        f"queue_unbind_{kind}",
        lambda number: Queue.Unbind(queue="q", exchange="x", routing_key=f"k.{number}", arguments={"k": number}),
        bound(kind),
    )
each("basic_get", lambda number: Basic.Get(queue="q"), with_messages)
each("basic_consume", lambda number: Basic.Consume(queue="q", consumer_tag=f"c{number}"), with_a_queue)
each("basic_consume_many", lambda number: Basic.Consume(queue=f"q{number}", consumer_tag=f"c{number}"), queues)
each("basic_cancel", lambda number: Basic.Cancel(consumer_tag=f"c{number}"), consumers)
each("basic_ack", lambda number: Basic.Ack(delivery_tag=number + 1), with_unacked)
each("basic_reject", lambda number: Basic.Reject(delivery_tag=number + 1, requeue=False), dead_lettering)
each("basic_requeue", lambda number: Basic.Reject(delivery_tag=number + 1), with_unacked)
each("basic_qos", lambda number: Basic.Qos(prefetch_count=number + 1, global_=True), consumers)


def settled_backwards(name: str, method: Callable[[int], base.Frame]) -> None:
    def play(world: World, n: int) -> Play:
        client = world.client()
        with_unacked(client, n)
        client.ignore(Basic.Cancel(consumer_tag="of q"))
        yield
        client.send_bytes(b"".join(frame.marshal(method(number), 1) for number in range(n, 0, -1)))
        assert 1 in client.session.channels

    ROWS.append(Row(f"{name}_backwards", play, 100))


settled_backwards("basic_ack", lambda number: Basic.Ack(delivery_tag=number))
settled_backwards("basic_requeue", lambda number: Basic.Reject(delivery_tag=number))


def at_once(name: str, before: Callable[[Client, int], object], *methods: base.Frame, n: int = 300) -> None:
    """Add a row that plays methods once, on n things."""

    def play(world: World, count: int) -> Play:
        client = world.client()
        before(client, count)
        yield
        client.send(*methods)
        assert not client.session.state.ignores_input, f"{name} failed"

    ROWS.append(Row(f"{name}_of_all", play, n))


def quiet(before: Callable[[Client, int], None]) -> Callable[[Client, int], None]:
    """Have nothing delivered again: the consumer is cancelled."""

    def play(client: Client, n: int) -> None:
        before(client, n)
        client.ignore(Basic.Cancel(consumer_tag="of q"))

    return play


def of_type(kind: str, n_of: Callable[[Client, int], None]) -> Callable[[Client, int], None]:
    def before(client: Client, n: int) -> None:
        declared(client, "q", **TYPES[kind])
        n_of(client, n)

    return before


def ready(client: Client, n: int) -> None:
    filled(client, "q", n)


def held(client: Client, n: int) -> None:
    unacked(client, "q", n)
    client.ignore(Basic.Cancel(consumer_tag="of q"))


CLOSE_CHANNEL = commands.Channel.Close(reply_code=200, reply_text="", class_id=0, method_id=0)

for kind in ("classic", "quorum", "priority"):
    at_once(f"queue_purge_{kind}", of_type(kind, ready), Queue.Purge(queue="q"))
    at_once(f"basic_ack_{kind}", of_type(kind, held), Basic.Ack(delivery_tag=0, multiple=True))
    at_once(f"basic_nack_requeue_{kind}", of_type(kind, held), Basic.Nack(delivery_tag=0, multiple=True, requeue=True))
    at_once(f"basic_nack_{kind}", of_type(kind, held), Basic.Nack(delivery_tag=0, multiple=True, requeue=False))
    at_once(f"channel_close_{kind}", of_type(kind, held), CLOSE_CHANNEL)
    at_once(f"basic_recover_{kind}", of_type(kind, held), Basic.Recover(requeue=True))
    at_once(f"queue_delete_held_{kind}", of_type(kind, held), Queue.Delete(queue="q"))
for kind in TYPES:
    at_once(f"queue_delete_{kind}", of_type(kind, ready), Queue.Delete(queue="q"))
    at_once(
        f"basic_consume_{kind}",
        of_type(kind, ready),
        Basic.Qos(prefetch_count=60_000),
        Basic.Consume(queue="q", consumer_tag="c", arguments={"x-stream-offset": "first"} if kind == "stream" else {}),
    )
at_once("basic_nack_dead_letters", quiet(dead_lettering), Basic.Nack(delivery_tag=0, multiple=True, requeue=False))
for kind in ("direct", "topic", "fanout", "headers"):
    at_once(f"queue_delete_bound_{kind}", bound(kind), Queue.Delete(queue="q"))
    at_once(f"exchange_delete_bound_{kind}", bound(kind), Exchange.Delete(exchange="x"))
at_once("queue_delete_consumed", consumers, Queue.Delete(queue="q"))
at_once("channel_close_consuming", consumers, CLOSE_CHANNEL)
at_once("connection_close_consuming", consumers, commands.Basic.Qos(prefetch_count=1))
