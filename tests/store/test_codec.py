from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqp_broker.amqp.fields import Table, encode_table
from amqp_broker.amqp.message import Address, Message, Properties, SpecialMessage
from amqp_broker.broker.durability.journal import Death, Stored
from amqp_broker.store.codec import HAS_TABLE, HEAD, Decoder, MalformedRecord, encode

NAMES = st.binary(max_size=255).map(lambda octets: octets.decode("utf-8", "surrogateescape"))


def message(exchange: str = "x", routing_key: str = "k", body: bytes = b"body", mode: int = 2) -> Message:
    return Message.build(Address(exchange, routing_key), Properties(delivery_mode=mode, message_id="1"), body)


def fate(stored: Stored) -> tuple[object, ...]:
    """Everything of a record but the message."""
    return stored.deadline_ms, stored.returns, stored.failures, stored.ready_at_ms, stored.death


def same(one: Message, other: Message) -> bool:
    names = ("exchange", "routing_key", "content", "channel", "is_persistent")
    return all(getattr(one, name) == getattr(other, name) for name in names)


@given(
    NAMES,
    NAMES,
    st.binary(max_size=300),
    st.booleans(),
    st.one_of(st.none(), st.integers(1, 2**63)),
    st.integers(0, 2**31),
)
def test_an_encoded_message_is_decoded(
    exchange: str, key: str, body: bytes, is_persistent: bool, deadline_ms: int | None, returns: int
) -> None:
    stored = Stored(message(exchange, key, body, 2 if is_persistent else 1), deadline_ms, returns)
    found = Decoder().decode(encode(stored))
    assert type(found.message) is Message
    assert same(found.message, stored.message)
    assert fate(found) == fate(stored)


def test_the_attributes_of_a_message_are_kept() -> None:
    special = SpecialMessage.of(message())
    special.has_died, special.had_empty_table, special.blind_keys = True, True, ["b", "ü"]
    found = Decoder().decode(encode(Stored(special, 5))).message
    assert isinstance(found, SpecialMessage)
    assert same(found, special)
    assert (found.has_died, found.had_empty_table, list(found.blind_keys)) == (True, True, ["b", "ü"])


@pytest.mark.parametrize(
    "stored",
    [
        Stored(message(), 5, 3, 0),
        Stored(message(), None, 3, None, 1_800_000_000_000),
        Stored(message(), 5, 3, 2, 7),
        Stored(message(), death=Death("rejected", 1_800_000_000_000)),
    ],
)
def test_counts_and_times_of_a_message_are_kept(stored: Stored) -> None:
    found = Decoder().decode(encode(stored))
    assert type(found.message) is Message
    assert same(found.message, stored.message)
    assert fate(found) == fate(stored)


def test_a_message_with_attributes_may_wait() -> None:
    special = SpecialMessage.of(message())
    special.blind_keys = ["b"]
    found = Decoder().decode(encode(Stored(special, 5, 1, 0, 7)))
    assert isinstance(found.message, SpecialMessage)
    assert list(found.message.blind_keys) == ["b"]
    assert fate(found) == (5, 1, 0, 7, None)


def test_the_number_in_a_trace_is_kept_in_the_run_of_the_broker_that_gave_it() -> None:
    special = SpecialMessage.of(message())
    special.number, special.blind_keys = 7, ["b"]
    record = encode(Stored(special), b"this run")
    found, later = (Decoder(run).decode(record).message for run in (b"this run", b"next run"))
    assert isinstance(found, SpecialMessage)
    assert isinstance(later, SpecialMessage)
    assert same(found, special)
    assert same(later, special)
    assert (found.number, later.number, list(later.blind_keys)) == (7, 0, ["b"])


def test_a_record_whose_number_is_cut_short_is_malformed() -> None:
    special = SpecialMessage.of(message(body=b""))
    special.number = 7
    record = encode(Stored(special))
    with pytest.raises(MalformedRecord, match="cut short"):
        Decoder().decode(record[: HEAD.size + 4 + 3])


def test_a_record_may_be_read_where_it_lies() -> None:
    record = encode(Stored(message()))
    assert same(Decoder().decode(memoryview(record)).message, message())


def test_messages_of_the_same_names_share_an_address_unless_one_of_them_has_died() -> None:
    decoder = Decoder()
    dead = SpecialMessage.of(message())
    dead.has_died = True
    first, second = (decoder.decode(encode(Stored(message()))).message for _ in range(2))
    assert first.address is second.address
    assert decoder.decode(encode(Stored(dead))).message.address is not first.address


def test_addresses_are_not_kept_without_bound() -> None:
    decoder = Decoder()
    for number in range(10_000):
        decoder.decode(encode(Stored(message(routing_key=str(number)))))
    assert len(decoder._addresses) <= 4096


@pytest.mark.parametrize("size", range(HEAD.size + 2))
def test_a_record_that_is_cut_short_is_refused(size: int) -> None:
    with pytest.raises(MalformedRecord, match="cut short"):
        Decoder().decode(encode(Stored(message("", "")))[:size])


def test_a_record_of_another_format_is_refused() -> None:
    with pytest.raises(MalformedRecord, match="a record has format 9, not 1"):
        Decoder().decode(b"\x09" + encode(Stored(message()))[1:])


def with_table(table: bytes) -> bytes:
    record = encode(Stored(message("", "")))
    at = HEAD.size + 2
    return record[:1] + bytes([record[1] | HAS_TABLE]) + record[2:at] + table + record[at:]


@pytest.mark.parametrize(
    "table",
    [
        {"death": "expired"},
        {"died_at": 1},
        {"death": 5, "died_at": 1},
        {"": "key"},
        {"": [1]},
        {"failures": "1"},
        {"failures": True},
        {"returns_failed": None},
        {"ready_at": 1.5},
        {"rerouted": 1},
    ],
)
def test_a_record_with_a_table_of_other_values_is_refused(table: Table) -> None:
    with pytest.raises(MalformedRecord, match="a table with other values"):
        Decoder().decode(with_table(encode_table(table)))


@pytest.mark.parametrize("table", [b"\xff\xff\xff\xff", b"\0\0\0\1a", b"\0\0\0\3\1az"])
def test_a_record_with_a_malformed_table_is_refused(table: bytes) -> None:
    with pytest.raises(MalformedRecord, match="a malformed table"):
        Decoder().decode(with_table(table))
