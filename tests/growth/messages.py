"""Rows: messages on their way, and the topology that they pass."""

from __future__ import annotations

from typing import Any, Final

from pamqp import commands, frame

from tests.growth.table import UNEVENNESS, Play, Row, row
from tests.growth.verbs import TYPES, Basic, Exchange, Queue, declared, filled, unacked
from tests.growth.world import Client, World
from tests.peer import publish_bytes

ROWS: Final[list[Row]] = []


def bursts(name: str, queue: dict[str, Any], **properties: Any) -> None:
    """Add a row that publishes n messages to a queue."""

    def play(world: World, n: int) -> Play:
        client = world.client()
        declared(client, "dead")
        declared(client, "q", **queue)
        client.call(commands.Confirm.Select())
        yield
        filled(client, "q", n, **properties)
        assert 1 in client.session.channels

    ROWS.append(Row(f"publishes_to_{name}", play, 150))


DEAD: Final[dict[str, Any]] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
for kind, arguments in TYPES.items():
    bursts(kind, arguments)
    bursts(f"{kind}_persistent", arguments, delivery_mode=2)
    if kind != "stream":
        bursts(f"{kind}_with_ttl", {**arguments, "x-message-ttl": 1000})
        bursts(f"{kind}_each_with_ttl", arguments, expiration="1000")
        bursts(f"{kind}_with_max_length", {**arguments, "x-max-length": 5})
        bursts(f"{kind}_with_max_length_and_dead_letters", {**arguments, **DEAD, "x-max-length": 5})
    if kind not in ("stream", "quorum"):
        bursts(f"{kind}_that_refuses", {**arguments, "x-max-length": 5, "x-overflow": "reject-publish"})
bursts("quorum_that_refuses", {**TYPES["quorum"], "x-max-length": 5, "x-overflow": "reject-publish"})
bursts("many_headers", {}, headers={f"h{number}": number for number in range(40)})


def consumed(name: str, queue: dict[str, Any], consumers: int, **options: Any) -> None:
    """Add a row that publishes n messages to a queue with consumers."""

    def play(world: World, n: int) -> Play:
        client, reader = world.client(), world.client()
        declared(client, "q", **queue)
        reader.ignore(Basic.Qos(prefetch_count=10))
        for number in range(consumers):
            reader.ignore(Basic.Consume(queue="q", consumer_tag=f"c{number}", **options))
        yield
        filled(client, "q", n)
        if not options.get("no_ack"):
            for tag in range(5, n, 5):
                reader.send(Basic.Ack(delivery_tag=tag, multiple=True))

    ROWS.append(Row(f"messages_to_{name}", play, 150))


for kind, arguments in TYPES.items():
    consumed(f"a_consumer_of_{kind}", arguments, 1)
    consumed(f"many_consumers_of_{kind}", arguments, 20)
consumed("a_consumer_without_acks", {}, 1, no_ack=True)
consumed("a_single_active_consumer", {"x-single-active-consumer": True}, 20)


def let_go(name: str, **rule: Any) -> None:
    """Add a row with n deliveries that a fault keeps back, until they are made together."""

    def play(world: World, n: int) -> Play:
        client, reader = world.client(), world.client()
        declared(client, "q")
        world.ask("POST", "/_broker/faults", {"queue": "q", **rule})
        reader.ignore(Basic.Consume(queue="q", consumer_tag="c"))
        filled(client, "q", n)
        yield
        world.ask("DELETE", "/_broker/faults")
        world.advance(1000)
        assert not world.broker.faults.delayed

    ROWS.append(Row(name, play, 150))


let_go("held_deliveries_are_released_together", action="hold_delivery")
let_go("delayed_deliveries_are_due_together", action="delay_delivery", delay_ms=1000)


def fanned_out(client: Client, queues: int, exchange: str = "x", kind: str = "fanout") -> None:
    client.call(Exchange.Declare(exchange=exchange, exchange_type=kind))
    declared(client, *(f"q{number}" for number in range(queues)))
    for number in range(queues):
        client.call(Queue.Bind(queue=f"q{number}", exchange=exchange, routing_key="k"))


@row(ROWS)
def publishes_to_twenty_queues(world: World, n: int) -> Play:
    client = world.client()
    fanned_out(client, 20)
    client.ignore(*(Basic.Consume(queue=f"q{number}", consumer_tag=f"c{number}") for number in range(20)))
    yield
    client.send_bytes(publish_bytes("k", b"m", exchange="x") * n)


@row(ROWS)
def a_publish_to_many_queues(world: World, n: int) -> Play:
    client = world.client()
    fanned_out(client, n)
    yield
    client.publish("k", b"m", exchange="x")


@row(ROWS)
def publishes_to_many_queues(world: World, n: int) -> Play:
    client = world.client()
    fanned_out(client, 300)
    yield
    client.send_bytes(publish_bytes("k", b"m", exchange="x") * n)


@row(ROWS)
def publishes_with_new_routing_keys(world: World, n: int) -> Play:
    client = world.client()
    fanned_out(client, 3, kind="topic")
    yield
    client.send_bytes(b"".join(publish_bytes(f"a.b.{number}", b"m", exchange="x") for number in range(n)))


@row(ROWS)
def publishes_to_an_unknown_exchange(world: World, n: int) -> Play:
    client = world.client()
    yield
    for _ in range(n):
        client.publish("k", b"m", exchange="none")
        client.send(commands.Channel.CloseOk())
        client.send(commands.Channel.Open())


def bound_to_patterns(client: Client, n: int, pattern: str) -> None:
    client.call(Exchange.Declare(exchange="x", exchange_type="topic"))
    declared(client, "q")
    for number in range(n):
        client.call(Queue.Bind(queue="q", exchange="x", routing_key=pattern.format(number)))


@row(ROWS, 30, bounds_turns=False)
def a_key_of_many_words_meets_a_pattern_of_many_wildcards(world: World, n: int) -> Play:
    client = world.client()
    bound_to_patterns(client, 1, ".".join(["*.#"] * 30 + ["z"]))
    yield
    client.publish(".".join(["a"] * n), b"m", exchange="x")


@row(ROWS)
def publishes_beside_many_patterns(world: World, n: int) -> Play:
    client = world.client()
    bound_to_patterns(client, n, "*.#.w{}.#.*.#")
    yield
    client.send_bytes(b"".join(publish_bytes(f"a.b.c.d.{number}", b"m", exchange="x") for number in range(5)))


@row(ROWS)
def publishes_beside_many_headers_bindings(world: World, n: int) -> Play:
    client = world.client()
    client.call(Exchange.Declare(exchange="x", exchange_type="headers"))
    declared(client, "q")
    for number in range(n):
        client.call(Queue.Bind(queue="q", exchange="x", arguments={"x-match": "any", f"h{number}": 1, "g": 2}))
    yield
    for _ in range(5):
        client.publish("", b"m", exchange="x", headers={"h": 1})


def chained(client: Client, n: int) -> None:
    """Make a chain of exchanges x0 … to a queue q."""
    declared(client, "q")
    for number in range(n):
        client.call(Exchange.Declare(exchange=f"x{number}", exchange_type="fanout"))
        if number:
            client.call(Exchange.Bind(destination=f"x{number}", source=f"x{number - 1}"))
    client.call(Queue.Bind(queue="q", exchange=f"x{n - 1}"))


@row(ROWS)
def a_publish_through_a_chain_of_exchanges(world: World, n: int) -> Play:
    client = world.client()
    chained(client, n)
    yield
    client.publish("k", b"m", exchange="x0")


@row(ROWS)
def the_first_of_a_chain_of_exchanges_is_deleted(world: World, n: int) -> Play:
    client = world.client()
    chained(client, n)
    yield
    client.send(Exchange.Delete(exchange="x0"))


@row(ROWS)
def a_chain_of_exchanges_that_delete_themselves(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "q")
    for number in range(n):
        client.call(Exchange.Declare(exchange=f"x{number}", exchange_type="fanout", auto_delete=True))
        if number:
            client.call(Exchange.Bind(destination=f"x{number}", source=f"x{number - 1}"))
    client.call(Queue.Bind(queue="q", exchange=f"x{n - 1}"))
    yield
    client.send(Queue.Delete(queue="q"))


@row(ROWS)
def a_publish_through_a_chain_of_alternate_exchanges(world: World, n: int) -> Play:
    client = world.client()
    for number in range(n, 0, -1):
        arguments: dict[str, Any] = {"alternate-exchange": f"x{number + 1}"}
        client.call(Exchange.Declare(exchange=f"x{number}", exchange_type="direct", arguments=arguments))
    yield
    client.publish("k", b"m", exchange="x1")


def dead_letter_chain(name: str, queue: dict[str, Any]) -> None:
    """Add a row in which a message passes n queues, each of which dead-letters it into the next."""

    def play(world: World, n: int) -> Play:
        client = world.client()
        declared(client, f"q{n}")
        for number in range(n):
            declared(client, f"q{number}", **{**DEAD, "x-dead-letter-routing-key": f"q{number + 1}", **queue})
        yield
        client.publish("q0", b"m")
        assert world.vhost.queues[f"q{n}"].ready_count == 1

    ROWS.append(Row(f"a_chain_of_queues_that_{name}", play, 20))


FULL: Final[dict[str, Any]] = {"x-max-length": 0}
for kind in ("classic", "quorum", "priority"):
    dead_letter_chain(f"drop_{kind}", {**TYPES[kind], **FULL})
    dead_letter_chain(f"expire_{kind}", {**TYPES[kind], "x-message-ttl": 0})
    if kind != "quorum":
        dead_letter_chain(f"refuse_{kind}", {**TYPES[kind], **FULL, "x-overflow": "reject-publish-dlx"})


@row(ROWS, bounds_turns=False)
def a_publish_with_many_copies(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "q")
    yield
    client.publish("q", b"m", headers={"CC": [f"k{number}" for number in range(n)]})


@row(ROWS, bounds_turns=False)
def a_publish_with_many_copies_beside_many_headers_bindings(world: World, n: int) -> Play:
    client = world.client()
    client.call(Exchange.Declare(exchange="x", exchange_type="headers"))
    declared(client, "q")
    for number in range(n):
        client.call(Queue.Bind(queue="q", exchange="x", arguments={"x-match": "any", f"h{number}": 1}))
    yield
    client.publish("k", b"m", exchange="x", headers={"CC": [f"k{number}" for number in range(n)]})


@row(ROWS, 30, unevenness=5000)
def a_publish_with_many_copies_beside_patterns(world: World, n: int) -> Play:
    client = world.client()
    bound_to_patterns(client, 30, "*.#.w{}.#.*.#")
    yield
    keys = [".".join(["a"] * 20 + [str(number)]) for number in range(n)]
    client.publish("k", b"m", exchange="x", headers={"CC": keys})


@row(ROWS, bounds_turns=False)
def a_publish_with_many_headers(world: World, n: int) -> Play:
    client = world.client()
    client.call(Exchange.Declare(exchange="x", exchange_type="headers"))
    declared(client, "q")
    client.call(Queue.Bind(queue="q", exchange="x", arguments={"h1": 1}))
    yield
    client.publish("q", b"m", exchange="x", headers={f"h{number}": number for number in range(n)})


@row(ROWS)
def a_publish_in_many_frames(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "q")
    yield
    client.publish("q", b"0123456789" * n, frame_size=10)


@row(ROWS)
def mandatory_publishes_without_a_queue(world: World, n: int) -> Play:
    client = world.client()
    yield
    client.send_bytes(publish_bytes("nowhere", b"m", mandatory=True) * n)


@row(ROWS)
def requests_with_direct_replies(world: World, n: int) -> Play:
    client, server = world.client(), world.client()
    declared(server, "rpc")
    server.ignore(Basic.Consume(queue="rpc", consumer_tag="s", no_ack=True))
    client.ignore(Basic.Consume(queue="amq.rabbitmq.reply-to", consumer_tag="r", no_ack=True))
    yield
    client.send_bytes(publish_bytes("rpc", b"m", reply_to="amq.rabbitmq.reply-to") * n)


@row(ROWS)
def a_commit_of_many_publishes(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "q")
    client.call(commands.Tx.Select())
    filled(client, "q", n)
    yield
    client.send(commands.Tx.Commit())


@row(ROWS, 300)
def a_commit_of_many_acks(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "q")
    unacked(client, "q", n)
    client.call(commands.Tx.Select())
    client.send_bytes(b"".join(frame.marshal(Basic.Ack(delivery_tag=tag + 1), 1) for tag in range(n)))
    yield
    client.send(commands.Tx.Commit())


@row(ROWS)
def a_rollback_of_many_publishes_and_acks(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "q")
    unacked(client, "q", n)
    client.call(commands.Tx.Select())
    filled(client, "q", n)
    client.send(Basic.Ack(delivery_tag=0, multiple=True))
    yield
    client.send(commands.Tx.Rollback())


@row(ROWS)
def rollbacks_of_many_acks(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "q")
    unacked(client, "q", 300)
    client.call(commands.Tx.Select())
    yield
    one = frame.marshal(Basic.Ack(delivery_tag=0, multiple=True), 1) + frame.marshal(commands.Tx.Rollback(), 1)
    client.send_bytes(one * n)


@row(ROWS)
def acks_of_ten_each(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "q")
    unacked(client, "q", n * 10)
    client.ignore(Basic.Cancel(consumer_tag="of q"))
    yield
    client.send_bytes(
        b"".join(frame.marshal(Basic.Ack(delivery_tag=10 * (step + 1), multiple=True), 1) for step in range(n))
    )


# Many clients


@row(ROWS)
def a_connection_with_many_channels_is_lost(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "q")
    for number in range(n):
        client.open_channel(number + 2)
        client.ignore(Basic.Consume(queue="q", consumer_tag=f"c{number}"), channel=number + 2)
    yield
    client.disconnect()


@row(ROWS)
def a_connection_with_many_channels_is_closed(world: World, n: int) -> Play:
    client = world.client()
    for number in range(n):
        client.open_channel(number + 2)
    yield
    client.send(commands.Connection.Close(200, "", 0, 0), channel=0)


@row(ROWS)
def a_connection_with_many_exclusive_queues_is_lost(world: World, n: int) -> Play:
    client = world.client()
    for number in range(n):
        client.call(Queue.Declare(queue=f"q{number}", exclusive=True))
        client.call(Queue.Bind(queue=f"q{number}", exchange="amq.topic", routing_key="a"))
    yield
    client.disconnect()
    assert len(world.vhost.queues) == 0


@row(ROWS)
def connections_come_and_go(world: World, n: int) -> Play:
    yield
    for client in [world.client() for _ in range(n)]:
        client.disconnect()


@row(ROWS)
def channels_are_opened(world: World, n: int) -> Play:
    client = world.client()
    yield
    client.send_bytes(b"".join(frame.marshal(commands.Channel.Open(), number + 2) for number in range(n)))


@row(ROWS)
def a_full_socket_with_many_consumers(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "q", *(f"q{number}" for number in range(n)))
    for number in range(n):
        client.ignore(Basic.Consume(queue=f"q{number}", consumer_tag=f"c{number}"))
    yield
    world.turn(client.session.pause)
    world.turn(client.session.resume, world.now)


@row(ROWS)
def many_backlogs_are_delivered(world: World, n: int) -> Play:
    client, reader = world.client(), world.client()
    declared(client, *(f"q{number}" for number in range(n)))
    for number in range(n):
        reader.ignore(Basic.Consume(queue=f"q{number}", consumer_tag=f"c{number}"))
    reader.session.pause()
    for number in range(n):
        filled(client, f"q{number}", 40)
    yield
    world.turn(reader.session.resume, world.now)


# A turn that goes on with a read looks for the traits of its messages anew.
@row(ROWS, 20, unevenness=UNEVENNESS)
def many_clients_do_much_at_once(world: World, n: int) -> Play:
    clients = [world.client() for _ in range(n)]
    fanned_out(clients[0], 100)
    yield
    burst = publish_bytes("k", b"m", exchange="x") * 20
    for client in clients:
        world.turn(client.read, burst)
