"""Two property lists, which may have the same shape.

The scan and the decoder agree about each, and so does a shape that is learnt from the other.

The first two octets are the size of the first list, and whether the broker delivers sorted headers, as RabbitMQ 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from amqp_broker.amqp.message import (
    CONTENT,
    HEADER_START_BYTES,
    Address,
    MalformedProperties,
    Message,
    Properties,
    content_frames,
    normal_list,
    parse_expiration,
)
from amqp_broker.amqp.property_list import UNREADABLE, Traits, are_finite, scan, traits_of, with_fields
from amqp_broker.amqp.property_shapes import PropertyShapes
from tests.fuzzing import fields
from tests.fuzzing.target import Failure, Target, expect
from tests.fuzzing.targets.field_table import same_but_nan
from tests.mutations import MUTATIONS, streams

SORTS = 0x8000
HEADERS = 1 << 13
OFFSET = b"\x0fx-stream-offsetl\0\0\0\0\0\0\0\7"


def check(data: bytes) -> None:
    start = int.from_bytes(data[:2], "big")
    sorts, size = bool(start & SORTS), start & ~SORTS
    one, other = data[2 : size + 2], data[size + 2 :]
    is_whole = [check_list(one, sorts), check_list(other, sorts)]
    shapes = PropertyShapes(sorts=sorts)
    if not is_whole[0]:
        return
    shapes.learn(one)
    if is_whole[1]:
        # A shape with strings of other lengths is learnt from several.
        shapes.learn(other)
    is_kept = len(one) <= 1000 and are_finite(one, scan(one).floats)
    expect(shapes.find(one) is not None or not is_kept, "a list that was learnt is not found")
    for listed in (one, other):
        found = shapes.find(listed)
        if found is not None:
            try:
                layout = scan(listed)
                expected = traits_of(layout, sorts) if are_finite(listed, layout.floats) else UNREADABLE
            except MalformedProperties:
                raise Failure(f"a shape fits {listed!r}, which is malformed") from None
            expect(seen(found, listed) == seen(expected, listed), f"a shape gives {listed!r} other traits")


def content_of(listed: bytes) -> bytes:
    return bytes(HEADER_START_BYTES) + listed + b"\xce and the body"


def seen(traits: Traits, listed: bytes) -> tuple[Any, ...]:
    """Return all that a publisher would see of the traits of a list."""
    moved = content_of(listed) if traits.sorter is None else traits.sorter.sort(content_of(listed))
    return traits.is_plain, traits.is_direct, traits.is_persistent, traits.expiration_ms, traits.has_headers, moved


def check_list(listed: bytes, sorts: bool) -> bool:
    """Return whether a list is well formed. Raise Failure."""
    try:
        properties = Properties.decode(listed)
    except MalformedProperties as error:
        try:
            scan(listed)
        except MalformedProperties as same:
            expect(str(same) == str(error), f"the scan says {same}, the decoder {error}")
            return False
        raise Failure(f"the scan takes {listed!r}, and the decoder says {error}") from None
    layout = scan(listed)
    traits = traits_of(layout, sorts)
    encoded = properties.encode()
    expect(Properties.decode(encoded).encode() == encoded, f"{listed!r} becomes another list")
    expect(traits.is_persistent == (properties.delivery_mode == 2), "another delivery mode")
    expect(traits.has_headers == (properties.headers is not None), "another presence of headers")
    expiration_ms = parse_expiration(properties.expiration)
    expect(traits.expiration_ms == expiration_ms, "another expiration")
    expect(not (traits.is_plain and traits.is_direct), "a list is both plain and direct")
    if traits.is_plain or traits.is_direct:
        expect(traits.is_direct == (properties.reply_to == "amq.rabbitmq.reply-to"), "another reply-to")
        expect(properties.user_id is None, "a list with a user-id is plain")
        expect(properties.expiration is None or expiration_ms is not None, "an invalid expiration is plain")
        expect(not (properties.headers or {}).keys() & {"CC", "BCC"}, "a list with copies is plain")
        expected = (normal_list(properties, expiration_ms) if sorts else None) or listed
        expect(same_but_nan(seen(traits, listed)[-1], content_of(expected)), f"{listed!r} is delivered otherwise")
    added = with_fields(listed, layout, [(OFFSET[1:16], OFFSET)])
    if added is not None:
        check_added(properties, added)
    check_message(properties, listed)
    return True


def check_added(properties: Properties, added: bytes) -> None:
    """Check a list with the header of streams: sorted, without an expiration, and all else as before."""
    expected = Properties(**properties.as_dict())
    headers = {**(properties.headers or {}), "x-stream-offset": 7}
    expected.headers = {key: headers[key] for key in sorted(headers)}
    expected.expiration = None
    found = Properties.decode(added)
    expect(list(found.headers or {}) == list(expected.headers), "added headers are not sorted")
    expect(repr(found.as_dict()) == repr(expected.as_dict()), f"added headers change {properties.as_dict()!r}")


def check_message(properties: Properties, listed: bytes) -> None:
    """Check what a message reads from its content without decoding it."""
    content = content_frames(1, CONTENT.pack(60, 0, 4) + listed, b"body", 4096)
    message = Message(Address("", "q"), content, 1, False)
    expect(message.priority == properties.priority, "another priority")
    expect(message.timestamp == properties.timestamp, "another timestamp")
    moded = message.with_delivery_mode()
    expected = {
        **properties.as_dict(),
        "delivery_mode": properties.delivery_mode if properties.delivery_mode is not None else 1,
    }
    found = moded.properties().as_dict()
    expect(repr(sorted(found.items())) == repr(sorted(expected.items())), "a delivery mode changes other properties")
    expect(moded.body == b"body", "a delivery mode changes the body")


def parts(data: bytes) -> tuple[int, list[bytes]]:
    start = int.from_bytes(data[:2], "big")
    size = start & ~SORTS
    return start & SORTS, [data[2 : size + 2], data[size + 2 :]]


def joined(sorts: int, one: bytes, other: bytes) -> bytes:
    return (sorts | len(one)).to_bytes(2, "big") + one + other


def mutate(chance: Random, data: bytes) -> bytes:
    sorts, lists = parts(data)
    number = chance.randrange(2)
    match chance.randrange(8):
        case 0:
            sorts ^= SORTS
        case 1:
            lists[number] = lists[1 - number]
        case 2 | 3 if lists[number]:
            lists[number] = chance.choice(MUTATIONS)(chance, lists[number])
        case _:
            lists[number] = with_other_headers(chance, lists[number])
    return joined(sorts, *lists)


def with_other_headers(chance: Random, listed: bytes) -> bytes:
    """Return a list whose headers have changed; one without headers gets some."""
    flags = int.from_bytes(listed[:2].ljust(2, b"\0"), "big")
    at = 2
    for flag in (1 << 15, 1 << 14):
        if flags & flag and at < len(listed):
            at += 1 + listed[at]
    if flags & HEADERS:
        end = at + 4 + int.from_bytes(listed[at : at + 4], "big")
        table = fields.mutate(chance, listed[at + 4 : end])
    else:
        end, table = at, fields.mutate(chance, b"")
    start = (flags | HEADERS).to_bytes(2, "big") + listed[2:at]
    return start + len(table).to_bytes(4, "big") + table + listed[end:]


def seeds() -> Iterator[bytes]:
    lists = [
        piece[7 + CONTENT.size : -1]
        for stream in streams()
        for piece in stream
        if piece[:1] == b"\2" and len(piece) > 22
    ]
    everything = Properties(
        content_type="text/plain",
        content_encoding="gzip",
        headers={"b": 1, "a": "x", "n": {"deep": [None]}},
        delivery_mode=2,
        priority=3,
        correlation_id="c",
        reply_to="amq.rabbitmq.reply-to",
        expiration="60000",
        message_id="m",
        timestamp=1,
        type="t",
        app_id="a",
        cluster_id="",
    )
    for listed in (*lists, everything.encode()):
        yield joined(SORTS, listed, listed)
        yield joined(0, listed, b"")


TARGET = Target(check, seeds, mutate, words=("amq.rabbitmq.reply-to", "CC", "BCC", "x-stream-offset"), octets_max=800)
