"""Generators of what stands on the wire: field values, properties, and octets that are almost right."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from amqp_broker.amqp.fields import (
    Byte,
    Decimal,
    Float32,
    Long,
    Short,
    Timestamp,
    UnsignedByte,
    UnsignedInt,
    UnsignedShort,
)


def examples(factor: float) -> int:
    """How many examples a test tries that needs more or fewer than others."""
    return int(settings().max_examples * factor)


def fits_shortstr(text: str) -> bool:
    return len(text.encode("utf-8", "surrogateescape")) <= 255


def any_octets(size_max: int) -> st.SearchStrategy[str]:
    """Text as we decode it from octets that need not be UTF-8."""
    return st.binary(max_size=size_max).map(lambda data: data.decode("utf-8", "surrogateescape"))


SHORT_TEXT = st.text(max_size=40).filter(fits_shortstr)
KEYS = st.one_of(st.sampled_from(["a", "b", "x-match", ""]), SHORT_TEXT, any_octets(20))

SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**7), 2**7 - 1).map(Byte),
    st.integers(0, 2**8 - 1).map(UnsignedByte),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.integers(0, 2**16 - 1).map(UnsignedShort),
    st.integers(0, 2**32 - 1).map(UnsignedInt),
    st.integers(-(2**63), 2**63 - 1).map(Long),
    st.integers(0, 2**64 - 1).map(Timestamp),
    st.floats(allow_nan=False),
    st.floats(allow_nan=False, width=32).map(Float32),
    st.builds(Decimal, st.integers(0, 255), st.integers(0, 2**32 - 1)),
    st.text(max_size=20),
    any_octets(20),
    st.binary(max_size=20),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=8
)
TABLES = st.dictionaries(KEYS, VALUES, max_size=5)


def as_pamqp_chooses(number: int) -> int:
    """An integer in the type that pamqp encodes it as: the smallest."""
    for kind, lowest, highest in (
        (Byte, -(2**7), 2**7 - 1),
        (Short, -(2**15), 2**15 - 1),
        (UnsignedShort, 0, 2**16 - 1),
        (int, -(2**31), 2**31 - 1),
        (UnsignedInt, 0, 2**32 - 1),
    ):
        if lowest <= number <= highest:
            return kind(number)
    return Long(number)


# Tables that pamqp encodes in one way only, and that to_pamqp can give it: it sorts keys and knows no double.
PAMQP_SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1).map(as_pamqp_chooses),
    st.floats(allow_nan=False, width=32).map(Float32),
    st.builds(Decimal, st.integers(0, 255), st.integers(0, 2**31 - 1)),
    st.integers(0, 2**32 - 1).map(Timestamp),  # larger ones are milliseconds to pamqp
    st.text(max_size=20),
    st.binary(max_size=20),
)
PAMQP_KEYS = st.text(max_size=30)
PAMQP_TABLES = st.dictionaries(
    PAMQP_KEYS,
    st.recursive(
        PAMQP_SCALARS,
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(PAMQP_KEYS, inner, max_size=4).map(lambda table: dict(sorted(table.items())))
        ),
        max_leaves=8,
    ),
    max_size=5,
).map(lambda table: dict(sorted(table.items())))


def to_pamqp(value: Any) -> Any:
    """Return a value of the broker in the Python types that pamqp takes."""
    match value:
        case Timestamp():
            return datetime.datetime.fromtimestamp(value, datetime.UTC)
        case Decimal():
            return decimal.Decimal((0, tuple(map(int, str(value.unscaled))), -value.scale))
        case bool() | None | str():
            return value
        case float():
            return float(value)
        case int():
            return int(value)
        case bytes():
            return bytearray(value)
        case list():
            return list(map(to_pamqp, value))
        case dict():
            return {key: to_pamqp(inner) for key, inner in value.items()}
    raise TypeError(type(value))


def shape(value: Any) -> Any:
    """A value with its types made visible: two are the same if their shapes are equal."""
    if isinstance(value, dict):
        return [(key, shape(inner)) for key, inner in value.items()]
    if isinstance(value, list):
        return ["list", *map(shape, value)]
    return type(value).__name__, repr(value)


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Octets that were right before some were cut out, put in or changed."""
    data = draw(whole)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 8)))
        data = data[:start] + draw(st.binary(max_size=6)) + data[end:]
    return data


PROPERTY_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "content_type": SHORT_TEXT,
    "content_encoding": any_octets(20),
    "headers": TABLES,
    "delivery_mode": st.integers(0, 255),
    "priority": st.integers(0, 255),
    "correlation_id": SHORT_TEXT,
    "reply_to": SHORT_TEXT,
    "expiration": SHORT_TEXT,
    "message_id": SHORT_TEXT,
    "timestamp": st.integers(0, 2**64 - 1),
    "type": SHORT_TEXT,
    "user_id": SHORT_TEXT,
    "app_id": SHORT_TEXT,
    "cluster_id": SHORT_TEXT,
}
PROPERTIES = st.fixed_dictionaries({}, optional=PROPERTY_VALUES)
