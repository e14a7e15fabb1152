"""The octets that a server sends to a shovel.

Its connection goes on or is lost with a reason, and does the same however they are cut.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from random import Random

from pamqp import commands

from amqp_broker.amqp.message import FRAME, Address, Message
from amqp_broker.shovel.amqp_client import Client, Lost, Procedure, ensure_queue
from tests import mutations
from tests.fuzzing.target import Target, expect
from tests.mutations import frames_of, message, method
from tests.peer import Lab

FRAME_KINDS = (1, 2, 3, 8)


class Mover:
    """Consumes from a queue, publishes what comes in once more, and notes what it is called for."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def set_up(self, client: Client) -> Procedure:
        yield from ensure_queue(client, "q", {"x-max-length": 5}, False)
        yield commands.Basic.Qos(0, 100)
        yield commands.Confirm.Select()

    def on_ready(self, client: Client) -> None:
        client.consume("q", False, {})

    def on_delivery(self, client: Client, tag: int, message: Message) -> None:
        self.calls.append(("delivery", tag, message.exchange, message.routing_key, message.property_list, message.body))
        message.properties()
        client.publish(Address("", "r"), message)
        client.ack(tag, False)

    def on_settled(self, client: Client, tag: int, multiple: bool, is_taken: bool) -> None:
        self.calls.append(("settled", tag, multiple, is_taken))

    def on_returned(self, client: Client, address: Address, reason: str) -> None:
        self.calls.append(("returned", address.exchange, address.routing_key, reason))

    def on_blocked(self, client: Client, is_blocked: bool) -> None:
        self.calls.append(("blocked", is_blocked))

    def on_cancel(self, client: Client) -> None:
        self.calls.append(("cancel",))


def lived(reads: list[bytes]) -> tuple[object, ...]:
    """Return what a client did with these reads, what it sent, and why it ended."""
    mover = Mover()
    client = Client(mover, "guest", "guest", "/", 10, "test")
    reason = ""
    try:
        for data in reads:
            client.receive(data)
            expect(len(client._pending) <= client.frame_max + FRAME.size + 1 + 131072, "keeps too many octets")
    except Lost as lost:
        reason = str(lost)
        expect(reason, "a connection is lost without a reason")
    sent = b"".join(client.outbox)
    check_sent(sent[8:])
    return mover.calls, sent, reason


def check_sent(sent: bytes) -> None:
    """Raise Failure for what is no AMQP, as a server reads it."""
    for piece in frames_of(sent):
        expect(piece[0] in FRAME_KINDS and piece[-1] == 0xCE, f"sends what is no frame: {piece[:50]!r}")


def check(data: bytes) -> None:
    chance = Random(zlib.crc32(data))
    at = sorted(chance.randrange(len(data) + 1) for _ in range(3))
    cut = [data[start:end] for start, end in zip([0, *at], [*at, len(data)], strict=True)]
    expect(lived([data]) == lived(cut), "what a client does depends on how reads are cut")


def mutate(chance: Random, data: bytes) -> bytes:
    # The first pieces are those of the handshake here as well.
    return b"".join(mutations.mutate(chance, frames_of(data), [frames_of(answer) for answer in answers()]))


def answers() -> list[bytes]:
    """Return what servers send: to a shovel, and other methods and messages."""
    tune = commands.Connection.Tune(2047, 131072, 60)
    start = method(commands.Connection.Start(mechanisms="PLAIN AMQPLAIN"), 0)
    opened = [start, method(tune, 0), method(commands.Connection.OpenOk(), 0), method(commands.Channel.OpenOk())]
    ready = [
        method(one)
        for one in (commands.Queue.DeclareOk("q", 0, 0), commands.Basic.QosOk(), commands.Confirm.SelectOk())
    ]
    deliver = method(commands.Basic.Deliver("shovel", 1, False, "x", "k"))
    returned = method(commands.Basic.Return(312, "NO_ROUTE", "", "r"))
    content = message("k", b"body" * 20, frame_size=30, headers={"n": 1}, delivery_mode=2)[1:]
    missing = method(commands.Channel.Close(404, "NOT_FOUND", 50, 10))
    rest = [
        *(method(commands.Basic.Ack(1)), method(commands.Basic.Nack(2, True)), returned, *content, deliver, *content),
        *(method(commands.Connection.Blocked("memory"), 0), method(commands.Connection.Unblocked(), 0)),
        *(method(commands.Basic.Cancel("shovel")), missing, method(commands.Connection.Close(320, "bye", 0, 0), 0)),
    ]
    return [
        b"".join([*opened, *ready, deliver, *content, *rest]),
        b"".join([*opened, missing, method(commands.Channel.OpenOk()), *ready, deliver, *content]),
        b"".join([*opened, *ready, *rest[:4]]),
        start,
    ]


def recorded() -> bytes:
    """Return what a broker sends to such a client."""
    lab, client, sent = Lab(), Client(Mover(), "guest", "guest", "/", 10, "test"), b""
    lab.connect().declare("q", durable=True)
    lab.connect().publish("q", b"body", headers={"n": 1})
    peer = lab.peer()
    for _ in range(12):
        peer.send_bytes(b"".join(client.outbox))
        client.outbox.clear()
        answer = b"".join(peer.session.outbox.take())
        sent += answer
        client.receive(answer)
    return sent


def seeds() -> Iterator[bytes]:
    yield from answers()
    yield recorded()


TARGET = Target(check, seeds, mutate, octets_max=4000)
