"""The frames that the hot path makes by hand, against pamqp's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pamqp import base, commands, frame

from amqp_broker.amqp import frames as wire
from amqp_broker.amqp.message import Address
from tests.properties.generators import SHORT_TEXT, fits_shortstr

CHANNELS = st.integers(0, 65535)
TAGS = st.integers(0, 2**63 - 1)
# The names of exchanges that pamqp takes are fewer than those that RabbitMQ takes.
EXCHANGES = st.text("abcXYZ019-_.:@#,/ ", max_size=127)
ROUTING_KEYS = st.text(max_size=255).filter(fits_shortstr)


def marshal(method: base.Frame, channel: int) -> bytes:
    return frame.marshal(method, channel)


@given(CHANNELS, SHORT_TEXT, TAGS, st.booleans(), EXCHANGES, ROUTING_KEYS)
def test_a_delivery_is_pamqps(
    channel: int, consumer_tag: str, tag: int, redelivered: bool, exchange: str, routing_key: str
) -> None:
    address = Address(exchange, routing_key)
    suffix = address.suffix_redelivered if redelivered else address.suffix
    made = wire.deliver_prefix(channel, consumer_tag, len(suffix)) + wire.TAG.pack(tag) + suffix
    assert made == marshal(commands.Basic.Deliver(consumer_tag, tag, redelivered, exchange, routing_key), channel)


@given(CHANNELS, TAGS, st.booleans(), EXCHANGES, ROUTING_KEYS, st.integers(0, 2**32 - 1))
def test_a_get_ok_is_pamqps(
    channel: int, tag: int, redelivered: bool, exchange: str, routing_key: str, message_count: int
) -> None:
    made = wire.get_ok_frame(channel, tag, Address(exchange, routing_key), redelivered, message_count)
    assert made == marshal(commands.Basic.GetOk(tag, redelivered, exchange, routing_key, message_count), channel)


@given(CHANNELS, st.integers(0, 65535), SHORT_TEXT, EXCHANGES, ROUTING_KEYS)
def test_a_return_is_pamqps(channel: int, code: int, text: str, exchange: str, routing_key: str) -> None:
    made = wire.return_frame(channel, code, text, Address(exchange, routing_key))
    assert made == marshal(commands.Basic.Return(code, text, exchange, routing_key), channel)


@given(CHANNELS, TAGS, st.booleans())
def test_acks_and_nacks_are_pamqps(channel: int, tag: int, multiple: bool) -> None:
    assert wire.ack_frame(channel, tag, multiple) == marshal(commands.Basic.Ack(tag, multiple), channel)
    assert wire.nack_frame(channel, tag, multiple) == marshal(commands.Basic.Nack(tag, multiple, True), channel)


@given(CHANNELS, TAGS, st.booleans(), st.booleans())
def test_settling_methods_are_read_as_pamqp_wrote_them(channel: int, tag: int, multiple: bool, requeue: bool) -> None:
    for method, bits in (
        (commands.Basic.Ack(tag, multiple), multiple),
        (commands.Basic.Nack(tag, multiple, requeue), multiple | requeue << 1),
        (commands.Basic.Reject(tag, requeue), requeue),
    ):
        payload = marshal(method, channel)[7:-1]
        assert wire.SETTLE.unpack(payload) == (method.index, tag, bits)


@given(st.integers(0, 255), st.binary(max_size=40), st.integers(0, 255))
def test_any_frame_can_be_described_in_an_error(kind: int, payload: bytes, octet: int) -> None:
    for error in (
        wire.bad_frame_end(kind, payload, octet),
        wire.unknown_frame(kind, payload),
        wire.unexpected_frame(kind, payload),
    ):
        assert fits_shortstr(error.reply_text)
        assert error.reply_text.isascii()
