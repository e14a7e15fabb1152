"""Lives of clients as streams of bytes, and ways to change them: what the fuzzer feeds to sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from pamqp import encode, frame
from pamqp.commands import Basic, Channel, Confirm, Connection, Exchange, Queue, Tx
from pamqp.common import FieldTable

from tests.peer import CAPABILITIES, publish_bytes

PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"
OCTETS = (0, 1, 2, 3, 8, 9, 0x20, 0x46, 0x53, 0x7F, 0x80, 0xCE, 0xFE, 0xFF)
SIZES = (0, 1, 2, 7, 8, 255, 256, 4096, 8184, 8185, 131_064, 131_072, 131_073, 2**31 - 1, 2**31, 2**32 - 1)


# The streams: frames, one a piece


def method(value: Any, channel: int = 1) -> bytes:
    return frame.marshal(value, channel)


def message(*arguments: Any, **options: Any) -> list[bytes]:
    """The frames of a message."""
    return frames_of(publish_bytes(*arguments, **options))


def frames_of(data: bytes) -> list[bytes]:
    frames = []
    while data:
        size = int.from_bytes(data[3:7], "big") + 8
        frames.append(data[:size])
        data = data[size:]
    return frames


def handshake(frame_max: int = 131072, mechanism: str = "PLAIN", response: str = "\0guest\0guest") -> list[bytes]:
    properties: FieldTable = {
        "product": "fuzz",
        "capabilities": dict(CAPABILITIES),
        "list": [1, "x", None, {"deep": True}],
    }
    return [
        PROTOCOL_HEADER,
        method(Connection.StartOk(properties, mechanism, response), 0),
        method(Connection.TuneOk(2047, frame_max, 0), 0),
        method(Connection.Open("/"), 0),
        method(Channel.Open()),
    ]


TABLE: FieldTable = {"x-message-ttl": 60_000, "x-unknown": [1, 2.5, "x", None, {"deep": [True]}], "x-max-length": 100}
AMQPLAIN = encode.field_table({"LOGIN": "guest", "PASSWORD": "guest"})[4:].decode("latin-1")


def streams() -> list[list[bytes]]:
    """Lives of clients. All but the last two open a connection in their first five pieces."""
    return [
        [
            *handshake(),
            method(Queue.Declare(queue="q", arguments=TABLE)),
            method(Queue.Bind(queue="q", exchange="amq.topic", routing_key="a.*.#")),
            method(Basic.Consume(queue="q", consumer_tag="c", arguments={"x-priority": 1})),
            *message("a.b", b"one", exchange="amq.topic", headers={"n": 1, "CC": ["q"], "BCC": ["p"]}, priority=3),
            *message("q", b"two" * 100, frame_size=50, delivery_mode=2, expiration="60000", user_id="guest"),
            method(Basic.Ack(1)),
            method(Basic.Nack(2, multiple=True, requeue=True)),
            *message("q", b""),
            method(Basic.Reject(3, requeue=False)),
            method(Basic.Cancel("c")),
            method(Basic.Recover(requeue=True)),
            method(Queue.Purge(queue="q")),
            method(Connection.Close(200, "bye", 0, 0), 0),
        ],
        [
            *handshake(),
            method(Confirm.Select()),
            method(Queue.Declare(queue="q", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})),
            *message("q", b"1", mandatory=True),
            *message("missing", b"2" * 300, mandatory=True, content_type="text/plain", message_id="m"),
            *message("q", b"3", delivery_mode=2),
            method(Basic.Get(queue="q")),
            *message("q", b"4"),
            method(Basic.Ack(1)),
            method(Channel.Close(200, "bye", 0, 0)),
            method(Channel.Open()),
            *message("q", b"5"),
        ],
        [
            *handshake(),
            method(Queue.Declare(queue="q", exclusive=True)),
            method(Tx.Select()),
            *message("q", b"1"),
            *message("q", b"2", headers={"n": {"deep": [1, 2, 3]}}),
            method(Tx.Commit()),
            method(Basic.Get(queue="q")),
            method(Basic.Ack(1)),
            method(Tx.Rollback()),
            method(Basic.Ack(1)),
            *message("missing", b"3", mandatory=True),
            method(Tx.Commit()),
            method(Queue.Delete(queue="q")),
        ],
        [
            *handshake(8192),
            method(Channel.Open(), 2),
            method(Queue.Declare(queue="q"), 2),
            method(Basic.Consume(queue="q", consumer_tag="c", no_ack=True), 2),
            method(Basic.Consume(queue="q", consumer_tag="d"), 1),
            *interleaved(message("q", b"x" * 9000, frame_size=3000), message("q", b"y" * 9, channel=2, frame_size=2)),
            HEARTBEAT,
            *message("q", b"z" * 8184, frame_size=8184),
            method(Basic.Ack(1)),
            method(Channel.Flow(True), 2),
            method(Queue.Delete(queue="q"), 2),
            method(Queue.Declare(queue="q"), 2),
        ],
        [
            *handshake(),
            method(Exchange.Declare(exchange="x", exchange_type="headers", auto_delete=True)),
            method(Exchange.Declare(exchange="y", exchange_type="fanout", arguments={"alternate-exchange": "x"})),
            method(Exchange.Bind(source="y", destination="x", routing_key="k", arguments={"x-match": "any", "n": 1})),
            method(Queue.Declare(queue="")),
            method(Queue.Bind(queue="", exchange="x", arguments={"x-match": "all", "n": 1, "t": "text"})),
            *message("k", b"1", exchange="y", headers={"n": 1, "t": "text"}),
            *message("k", b"2", exchange="y", headers={"n": 2}, mandatory=True),
            method(Basic.Get(queue="", no_ack=True)),
            method(Exchange.Unbind(source="y", destination="x", routing_key="k")),
            method(Queue.Unbind(queue="", exchange="x", arguments={"x-match": "all", "n": 1, "t": "text"})),
            method(Exchange.Delete(exchange="y", if_unused=True)),
            method(Queue.Declare(queue="missing", passive=True)),
            method(Channel.CloseOk()),
            method(Channel.Open()),
        ],
        [
            *handshake(mechanism="AMQPLAIN", response=AMQPLAIN),
            method(Queue.Declare(queue="q")),
            *[piece for number in range(6) for piece in message("q", b"%d" % number)],
            method(Basic.Qos(prefetch_count=2)),
            method(Basic.Consume(queue="q", consumer_tag="c")),
            method(Basic.Qos(prefetch_count=3, global_=True)),
            method(Basic.Consume(queue="q", consumer_tag="d")),
            method(Basic.Ack(2, multiple=True)),
            method(Basic.Nack(3, requeue=True)),
            method(Basic.Qos(prefetch_count=0, global_=True)),
            method(Connection.UpdateSecret("new", "rotation"), 0),
        ],
        [*handshake(response="\0guest\0wrong")[:2], method(Connection.StartOk({}, "PLAIN", "\0guest\0guest"), 0)],
        [PROTOCOL_HEADER, method(Connection.StartOk({}, "ANONYMOUS", ""), 0), *handshake()[2:], HEARTBEAT],
    ]


def interleaved(one: list[bytes], other: list[bytes]) -> Iterator[bytes]:
    for number in range(max(len(one), len(other))):
        yield from one[number : number + 1]
        yield from other[number : number + 1]


# Mutations


def flip_a_bit(chance: Random, data: bytes) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def set_an_octet(chance: Random, data: bytes) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([chance.choice(OCTETS)]) + data[at + 1 :]


def set_a_size(chance: Random, data: bytes) -> bytes:
    at = chance.randrange(len(data))
    octets = chance.choice((1, 2, 4, 8))
    size = chance.choice(SIZES) % (1 << 8 * octets)
    return data[:at] + size.to_bytes(octets, "big") + data[at + octets :]


def cut_out(chance: Random, data: bytes) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + data[at + chance.randrange(1, 9) :]


def cut_off(chance: Random, data: bytes) -> bytes:
    return data[: chance.randrange(len(data))]


def repeat(chance: Random, data: bytes) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + data[at : at + chance.randrange(1, 20)] * chance.choice((2, 3, 40)) + data[at:]


def insert(chance: Random, data: bytes) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + chance.randbytes(chance.randrange(1, 9)) + data[at:]


MUTATIONS: tuple[Callable[[Random, bytes], bytes], ...] = (
    flip_a_bit,
    set_an_octet,
    set_a_size,
    cut_out,
    cut_off,
    repeat,
    insert,
)


def mutate(chance: Random, pieces: list[bytes], others: list[list[bytes]]) -> list[bytes]:
    """A stream with a few things changed, mostly behind the handshake."""
    pieces = list(pieces)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 5))):
        first = 5 if chance.random() < 0.8 and len(pieces) > 5 else 0
        at = chance.randrange(first, len(pieces))
        match chance.randrange(10):
            case 0:
                del pieces[at]
            case 1:
                pieces[at:at] = [pieces[at]] * chance.choice((1, 1, 30))
            case 2:
                to = chance.randrange(first, len(pieces))
                pieces[at], pieces[to] = pieces[to], pieces[at]
            case 3:
                pieces.insert(at, chance.choice(chance.choice(others)[5:] or [HEARTBEAT]))
            case 4 if len(pieces[at]) > 8:
                number = chance.choice((0, 1, 2, 3, 65535))
                pieces[at] = pieces[at][:1] + number.to_bytes(2, "big") + pieces[at][3:]
            case 5:
                pieces[at] = chance.choice(MUTATIONS)(chance, pieces[at])
            case _:
                pieces[at] = mutate_payload(chance, pieces[at])
        pieces = [piece for piece in pieces if piece] or [HEARTBEAT]
    return pieces


def mutate_payload(chance: Random, piece: bytes) -> bytes:
    """Change what is in a frame, and leave the frame as one: this gets behind the first check."""
    if len(piece) <= 8 or piece[-1] != 0xCE:
        return piece
    payload = chance.choice(MUTATIONS)(chance, piece[7:-1])
    return piece[:3] + len(payload).to_bytes(4, "big") + payload + b"\xce"
