"""A field table without its size.

The decoder and the scan of property lists agree, and values stay what they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.fields import MalformedTable, decode_table, encode_table, erlang_term
from amqp_broker.amqp.message import MalformedProperties
from amqp_broker.amqp.property_list import Layout, scan
from tests.fuzzing.fields import mutate
from tests.fuzzing.target import Failure, Target, expect
from tests.mutations import TABLE

# The type and the first two octets of a float that is no number, and the bit that makes it a quiet one.
NAN: Final = re.compile(rb"f[\x7f\xff][\x80-\xff]")
QUIET: Final = 0x40


def check(data: bytes) -> None:
    sized = len(data).to_bytes(4, "big") + data
    try:
        table, end = decode_table(sized)
    except MalformedTable as error:
        expect(layout_of(sized) is None, f"the scan takes a table of which the decoder says: {error}")
        return
    layout = layout_of(sized)
    if layout is None or layout.entries is None:
        raise Failure("the scan refuses a table that the decoder takes")
    expect(end == len(sized), "the decoder stops before the end of a table")
    encoded = encode_table(table)
    again, end = decode_table(encoded)
    expect(end == len(encoded) and encode_table(again) == encoded, f"{table!r} becomes {again!r}")
    expect(erlang_term(again) == erlang_term(dict(table)), f"{table!r} is shown as {erlang_term(again)}")
    keys = [key for key, _, _ in layout.entries]
    expect(set(keys) == {fields_key(key) for key in table}, "the scan finds other keys than the decoder")
    if layout.is_exact and len(set(keys)) == len(keys):
        expect(same_but_nan(encoded, sized), f"{sized!r} becomes {encoded!r}, although the scan calls it exact")


def same_but_nan(one: bytes, other: bytes) -> bool:
    """Return whether only signalling NaNs of 32 bits differ: Python makes them quiet when it reads them."""
    if len(one) != len(other):
        return False
    return all(
        octet == seen or (octet | QUIET == seen | QUIET and NAN.match(one, index - 2))
        for index, (octet, seen) in enumerate(zip(one, other, strict=True))
    )


def fields_key(key: str) -> bytes:
    return key.encode("utf-8", "surrogateescape")


def layout_of(sized: bytes) -> Layout | None:
    """Return the layout of a property list that has this table as headers; None if it is malformed."""
    try:
        return scan(b"\x20\x00" + sized)
    except MalformedProperties:
        return None


def seeds() -> Iterator[bytes]:
    yield b""
    # A key that looks like the beginning of its value, a signalling NaN.
    yield b"\x03f\x7f\xacf\x7f\xac\x40\xde"
    yield encode_table(TABLE)[4:]
    yield encode_table({"a": [1, fields.Byte(-1), fields.Float32(0.5), None, b"x", {"deep": [True, {}]}]})[4:]
    yield encode_table({"t": fields.Timestamp(1), "d": fields.Decimal(2, 314), "l": 1 << 40, "f": 1.5, "e": []})[4:]


TARGET = Target(check, seeds, mutate, octets_max=600)
