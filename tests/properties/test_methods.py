"""The codec of methods against pamqp's, for each method that AMQP has."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pamqp import base, commands, frame

from amqp_broker.amqp.errors import Disconnect, FrameError
from amqp_broker.amqp.fields import is_finite
from amqp_broker.amqp.frames import method_frame
from amqp_broker.amqp.message import FRAME
from amqp_broker.amqp.methods import METHODS, decode_method, encode_method
from tests.properties.generators import PAMQP_TABLES, SHORT_TEXT, TABLES, damaged, examples, shape, to_pamqp

# Values as both sides take them. Erlang reads no number that is not finite, so no method has one.
COMMON: dict[str, st.SearchStrategy[Any]] = {
    "bit": st.booleans(),
    "octet": st.integers(0, 2**8 - 1),
    "short": st.integers(0, 2**16 - 1),
    "long": st.integers(0, 2**32 - 1),
    "longlong": st.integers(0, 2**63 - 1),
    "shortstr": SHORT_TEXT,
    "longstr": st.text(max_size=30),
    "table": PAMQP_TABLES.filter(is_finite),
}
# Values that pamqp would not take, but that are right.
OURS = COMMON | {
    "longlong": st.integers(0, 2**64 - 1),
    "longstr": st.binary(max_size=30),
    "table": TABLES.filter(is_finite),
}
PAMQPS = [pytest.param(kind, id=METHODS[number].name) for number, kind in commands.INDEX_MAPPING.items()]


def types_of(kind: type[base.Frame]) -> dict[str, str]:
    return {name: kind.amqp_type(name) for name in kind.attributes()}


def filled(kind: type[base.Frame], values: dict[str, Any]) -> Any:
    """A method without the checks of pamqp's constructor, which are about names, not about octets."""
    method = kind.__new__(kind)
    for name, value in values.items():
        setattr(method, name, value)
    return method


def values_for(kind: type[base.Frame], source: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    types = types_of(kind)
    values = st.fixed_dictionaries({name: source[type_] for name, type_ in types.items()})
    return values.map(lambda drawn: {name: drawn[name] for name in types})


def pamqps_frame(kind: type[base.Frame], values: dict[str, Any], channel: int) -> bytes:
    lenient = type(kind.__name__, (kind,), {"__slots__": kind.attributes(), "validate": lambda self: None})
    return frame.marshal(filled(lenient, {name: to_pamqp(value) for name, value in values.items()}), channel)


@pytest.mark.parametrize("kind", PAMQPS)
@settings(max_examples=examples(0.15))
@given(st.data())
def test_a_method_is_encoded_as_pamqp_encodes_it_and_decoded_again(kind: type[base.Frame], data: st.DataObject) -> None:
    values, channel = data.draw(values_for(kind, COMMON)), data.draw(st.integers(0, 65535))
    expected_frame = pamqps_frame(kind, values, channel)
    assert method_frame(channel, encode_method(filled(kind, values))) == expected_frame
    method = decode_method(expected_frame[FRAME.size : -1])
    assert type(method) is kind
    types = types_of(kind)
    expected = {name: value.encode() if types[name] == "longstr" else value for name, value in values.items()}
    assert shape(dict(method)) == shape(expected)


@settings(max_examples=examples(3))
@given(st.sampled_from(list(METHODS.values())), st.data())
def test_decoding_undoes_encoding(kind: type[base.Frame], data: st.DataObject) -> None:
    values = data.draw(values_for(kind, OURS))
    payload = encode_method(filled(kind, values))
    method = decode_method(payload)
    assert shape(dict(method)) == shape(values)
    assert encode_method(method) == payload


@st.composite
def payloads(draw: st.DrawFn) -> bytes:
    kind = draw(st.sampled_from(list(METHODS.values())))
    return encode_method(filled(kind, draw(values_for(kind, OURS))))


NUMBERS = st.sampled_from(list(METHODS)).map(lambda number: number.to_bytes(4, "big"))


@settings(max_examples=examples(5))
@given(
    st.one_of(
        st.binary(max_size=40),
        st.tuples(NUMBERS, st.binary(max_size=40)).map(b"".join),
        damaged(payloads()),
    )
)
@example(b"\x00\x32\x00\x0a\x00\x00\x00\x00" + b"\0\0\xff\xff\1aF" * 5000)
def test_any_octets_are_a_method_or_refused(payload: bytes) -> None:
    try:
        method = decode_method(payload)
    except (Disconnect, FrameError):
        return
    # A decoded method can be decoded again. Meaningless bits are lost, and a table has a single encoding.
    assert shape(dict(decode_method(encode_method(method)))) == shape(dict(method))


@given(payloads(), st.data())
def test_a_method_that_was_cut_is_refused(payload: bytes, data: st.DataObject) -> None:
    with pytest.raises((Disconnect, FrameError)):
        decode_method(payload[: data.draw(st.integers(0, len(payload) - 1))])


@given(payloads(), st.binary(min_size=1, max_size=10))
def test_a_method_with_something_behind_it_is_refused(payload: bytes, behind: bytes) -> None:
    with pytest.raises(FrameError):
        decode_method(payload + behind)
