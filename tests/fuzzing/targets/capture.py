"""A file of captured messages.

It is refused with its line and the reason, or is the same when it is written and read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from amqp_broker.broker.observe.capture import CapturedMessage
from amqp_broker.management.documents.capture_file import (
    CaptureFileError,
    Skipped,
    header_line,
    message_line,
    read,
    read_header,
    skipped_line,
)
from tests.broker_parts import new_message
from tests.fuzzing import documents
from tests.fuzzing.target import Target, expect

KEYS = (
    *(
        "format",
        "version",
        "vhost",
        "started_at_ms",
        "at_us",
        "exchange",
        "routing_key",
        "mandatory",
        "user",
        "skipped",
    ),
    *("properties", "properties_base64", "body", "body_base64", "headers", "delivery_mode", "timestamp", "expiration"),
    *("content_type", "priority", "user_id", "CC", "reply_to"),
)


def check(data: bytes) -> None:
    lines = data.splitlines(keepends=True)
    try:
        found = list(read(lines))
    except CaptureFileError as error:
        expect(str(error), "a refusal without a sentence")
        return
    head = read_header(lines[0])
    written = [header_line(head.vhost, head.started_at_ms)]
    for one in found:
        written.append(skipped_line(one.messages) if isinstance(one, Skipped) else message_line(one))
    again = list(read(written))
    expect(list(map(facts, again)) == list(map(facts, found)), f"{data!r} becomes {written!r}")


def facts(one: CapturedMessage | Skipped) -> tuple[object, ...]:
    if isinstance(one, Skipped):
        return tuple(one)
    message = one.message
    names = message.exchange, message.routing_key
    return one.at_us, *names, message.property_list, message.body, one.mandatory, one.user


def mutate(chance: Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True) or [b"{}\n"]
    at = chance.randrange(len(lines))
    match chance.randrange(8):
        case 0 if at:
            del lines[at]
        case 1 if at:
            lines.insert(at, lines[at])
        case _:
            lines[at] = documents.mutate(chance, lines[at], KEYS).replace(b"\n", b"") + b"\n"
    return b"".join(lines)


def seeds() -> Iterator[bytes]:
    head = header_line("/", 1_700_000_000_000)
    plain = new_message(b"body", "a.b", delivery_mode=2, headers={"n": 1, "t": {"x": [None, True]}}, timestamp=1)
    binary = new_message(b"\xff\x00", "\udcff", expiration="60000", correlation_id="\udcfe", headers={"b": b"\xff"})
    one = message_line(CapturedMessage(5, plain, True, "guest"))
    yield head
    yield head + one
    yield head + one + message_line(CapturedMessage(9, binary)) + skipped_line(3)
    yield head + one[:-1]


TARGET = Target(check, seeds, mutate, words=tuple(f'"{key}":' for key in KEYS), octets_max=2000)
