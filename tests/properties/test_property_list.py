"""The scan of a property list agrees with its decoder, and lists of one shape have the same traits."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from amqp_broker.amqp.message import (
    HEADER_START_BYTES,
    MalformedProperties,
    Properties,
    normal_list,
    parse_expiration,
)
from amqp_broker.amqp.property_list import Traits, scan, traits_of
from amqp_broker.amqp.property_shapes import LENGTHS_MAX, PropertyShapes
from tests.properties.generators import PROPERTIES, damaged, examples


def field(key: bytes, kind: bytes, value: bytes) -> bytes:
    return bytes([len(key)]) + key + kind + value


def block(values: list[bytes]) -> bytes:
    data = b"".join(values)
    return len(data).to_bytes(4, "big") + data


def strings(size_max: int) -> st.SearchStrategy[bytes]:
    return st.binary(max_size=size_max).map(lambda text: len(text).to_bytes(4, "big") + text)


# Few keys and all types, so that keys are often repeated or out of order.
KEYS = st.sampled_from([b"a", b"b", b"c", b"B", b"", b"CC", b"BCC", b"\xc3\xa9", b"\xff"])
LEAVES = st.one_of(
    st.tuples(st.sampled_from([b"S", b"x"]), strings(3)),
    st.tuples(st.just(b"t"), st.sampled_from([b"\0", b"\1", b"\2"])),
    st.tuples(st.sampled_from([b"b", b"B"]), st.binary(min_size=1, max_size=1)),
    st.tuples(st.sampled_from([b"s", b"u"]), st.binary(min_size=2, max_size=2)),
    st.tuples(st.sampled_from([b"I", b"i"]), st.binary(min_size=4, max_size=4)),
    st.tuples(st.sampled_from([b"l", b"L", b"T"]), st.binary(min_size=8, max_size=8)),
    st.tuples(st.just(b"d"), st.just(bytes(8))),
    st.tuples(st.just(b"D"), st.binary(min_size=5, max_size=5)),
    st.tuples(st.just(b"V"), st.just(b"")),
)


def nested(values: st.SearchStrategy[tuple[bytes, bytes]]) -> st.SearchStrategy[tuple[bytes, bytes]]:
    tables = st.lists(st.builds(lambda key, value: field(key, *value), KEYS, values), max_size=3)
    arrays = st.lists(values.map(b"".join), max_size=3)
    return st.tuples(st.just(b"F"), tables.map(block)) | st.tuples(st.just(b"A"), arrays.map(block))


VALUES = st.recursive(LEAVES, nested, max_leaves=4)
EXPIRATIONS = st.sampled_from([b"0", b"10", b"20", b"+5", b"007", b"-0", b"x", b""])
REPLY_TOS = st.sampled_from([b"q", b"amq.rabbitmq.reply-to", b"amq.rabbitmq.reply-to.x", b"x" * 21])


@st.composite
def lists(draw: st.DrawFn, keys: st.SearchStrategy[bytes] = KEYS) -> bytes:
    """A well formed list with headers in any order, and some of the properties that matter."""
    fields = st.builds(lambda key, value: field(key, *value), keys, VALUES)
    flags, data = 1 << 13, block(draw(st.lists(fields, max_size=5)))
    for flag, strategy in (
        (1 << 12, st.sampled_from([b"\1", b"\2", b"\3"])),
        (1 << 11, st.binary(min_size=1, max_size=1)),
        (1 << 9, REPLY_TOS.map(lambda text: bytes([len(text)]) + text)),
        (1 << 8, EXPIRATIONS.map(lambda text: bytes([len(text)]) + text)),
        (1 << 6, st.binary(min_size=8, max_size=8)),
        (1 << 4, st.sampled_from([b"\5guest", b"\0"])),
    ):
        if draw(st.integers(0, 3)) == 0:
            flags |= flag
            data += draw(strategy)
    return flags.to_bytes(2, "big") + data


def any_list() -> st.SearchStrategy[bytes]:
    whole = PROPERTIES.map(lambda values: Properties(**values).encode()) | lists()
    return st.one_of(whole, damaged(whole), st.binary(max_size=40))


def content_of(data: bytes) -> bytes:
    return bytes(HEADER_START_BYTES) + data + b"\xce and the body"


def result(traits: Traits, data: bytes) -> tuple[object, ...]:
    """Return all that a publisher would see of the traits of a list."""
    content = content_of(data)
    moved = content if traits.sorter is None else traits.sorter.sort(content)
    return traits.is_plain, traits.is_direct, traits.is_persistent, traits.expiration_ms, traits.has_headers, moved


@settings(max_examples=examples(10))
@given(any_list())
@example(b"\x20\x00" + b"\0\0\xff\xff\1aF" * 5000)
def test_the_scan_agrees_with_the_decoder_on_every_list(data: bytes) -> None:
    try:
        properties = Properties.decode(data)
    except MalformedProperties as error:
        with pytest.raises(MalformedProperties, match=str(error)):
            scan(data)
        return
    traits = traits_of(scan(data), sorts=True)
    headers = properties.headers or {}
    expiration_ms = parse_expiration(properties.expiration)
    assert traits.is_persistent == (properties.delivery_mode == 2)
    assert traits.has_headers == (properties.headers is not None)
    assert traits.expiration_ms == expiration_ms
    assert not (traits.is_plain and traits.is_direct)
    if traits.is_plain or traits.is_direct:
        assert traits.is_direct == (properties.reply_to == "amq.rabbitmq.reply-to")
        assert properties.user_id is None
        assert properties.expiration is None or expiration_ms is not None
        assert not headers.keys() & {"CC", "BCC"}
        expected = normal_list(properties, expiration_ms) or data
        assert result(traits, data)[-1] == content_of(expected)


@settings(max_examples=examples(10))
@given(lists(), st.data())
def test_a_list_of_a_known_shape_has_its_own_traits(data: bytes, choices: st.DataObject) -> None:
    shapes = PropertyShapes(sorts=choices.draw(st.booleans()))
    shapes.learn(data)
    changed = bytearray(data)
    for _ in range(choices.draw(st.integers(1, 3))):
        changed[choices.draw(st.integers(0, len(data) - 1))] = choices.draw(st.integers(0, 255))
    other = bytes(changed)
    for one in (data, other):
        found = shapes.find(one)
        if found is not None:
            assert result(found, one) == result(traits_of(scan(one), shapes.sorts), one)
    assert shapes.find(data) is not None


@st.composite
def alike(draw: st.DrawFn) -> list[bytes]:
    """Lists of one application: the same properties and headers, with strings of any length."""
    keys = draw(st.lists(st.sampled_from([b"a", b"b", b"c", b"dd"]), unique=True, max_size=4))
    kinds = [draw(st.sampled_from([b"S", b"x", b"I", b"F"])) for _ in keys]
    found = []
    for _ in range(draw(st.integers(2, 2 * LENGTHS_MAX))):
        fields = []
        for key, kind in zip(keys, kinds, strict=True):
            text = block([b"x" * draw(st.integers(0, 3))])
            nested_table = block([field(b"n", b"S", block([b"y" * draw(st.integers(0, 1))]))])
            fields.append(field(key, kind, {b"I": b"\0\0\0\1", b"F": nested_table}.get(kind, text)))
        texts = [bytes([size]) + b"t" * size for size in draw(st.tuples(*[st.integers(0, 2)] * 3))]
        found.append(b"\xe0\x80" + texts[0] + texts[1] + block(fields) + texts[2])
    return found


@settings(max_examples=examples(10))
@given(alike(), st.data())
def test_lists_whose_strings_have_other_lengths_have_their_own_traits(
    lists: list[bytes], choices: st.DataObject
) -> None:
    shapes = PropertyShapes(sorts=True)
    for data in lists:
        if shapes.find(data) is None:
            shapes.learn(data)
    changed = bytearray(choices.draw(st.sampled_from(lists)))
    for _ in range(choices.draw(st.integers(1, 3))):
        changed[choices.draw(st.integers(0, len(changed) - 1))] = choices.draw(st.integers(0, 6))
    for one in (*lists, bytes(changed)):
        found = shapes.find(one)
        assert found is not None or one not in lists
        if found is not None:
            assert result(found, one) == result(traits_of(scan(one), sorts=True), one)
