"""A field table without its size.

The decoder and the scan of property lists agree, and values stay what they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from amqp_broker.amqp import fields
from amqp_broker.amqp.fields import MalformedTable, decode_table, encode_table, erlang_term
from amqp_broker.amqp.message import MalformedProperties
from amqp_broker.amqp.property_list import Layout, scan
from tests.fuzzing.fields import mutate
from tests.fuzzing.target import Failure, Target, expect
from tests.mutations import TABLE


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


# A float that is no number has other octets, if it is a signalling one, when Python has read it.
NAN = re.compile(rb"f[\x7f\xff][\x80-\xff]..", re.DOTALL)


def same_but_nan(one: bytes, other: bytes) -> bool:
    return one == other or NAN.sub(b"", one) == NAN.sub(b"", other)


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
    yield encode_table(TABLE)[4:]
    yield encode_table({"a": [1, fields.Byte(-1), fields.Float32(0.5), None, b"x", {"deep": [True, {}]}]})[4:]
    yield encode_table({"t": fields.Timestamp(1), "d": fields.Decimal(2, 314), "l": 1 << 40, "f": 1.5, "e": []})[4:]


TARGET = Target(check, seeds, mutate, octets_max=600)
