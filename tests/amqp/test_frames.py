from __future__ import annotations

import pytest
from pamqp import base, commands, frame
from pamqp.heartbeat import Heartbeat

from amqp_broker.amqp import frames as wire
from amqp_broker.amqp.errors import FrameError, UnexpectedFrame, UnreadableFrame
from amqp_broker.amqp.message import FRAME, Address


def test_the_protocol_header_is_amqp_0_9_1() -> None:
    assert bytes([*b"AMQP", 0, 0, 9, 1]) == wire.PROTOCOL_HEADER


def test_the_heartbeat_frame_is_pamqps() -> None:
    assert frame.marshal(Heartbeat(), 0) == wire.HEARTBEAT_FRAME


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (wire.PUBLISH, commands.Basic.Publish),
        (wire.ACK, commands.Basic.Ack),
        (wire.REJECT, commands.Basic.Reject),
        (wire.NACK, commands.Basic.Nack),
    ],
)
def test_the_methods_of_the_hot_path_have_their_numbers(number: int, kind: type[base.Frame]) -> None:
    assert kind.index == number


@pytest.mark.parametrize("method", [commands.Basic.Ack(7), commands.Basic.Nack(7), commands.Basic.Reject(7)])
def test_a_settling_method_is_thirteen_octets(method: base.Frame) -> None:
    payload = frame.marshal(method, 1)[FRAME.size : -1]
    assert len(payload) == wire.SETTLE.size == 13
    assert wire.SETTLE.unpack(payload)[:2] == (method.index, 7)


def test_a_method_frame_surrounds_its_payload() -> None:
    assert wire.method_frame(258, b"abc") == b"\x01\x01\x02\x00\x00\x00\x03abc\xce"


def test_an_ack_frame_equals_pamqps() -> None:
    assert wire.ack_frame(3, 2**63 - 1, True) == frame.marshal(commands.Basic.Ack(2**63 - 1, True), 3)


def test_a_nack_for_a_publisher_has_its_requeue_bit_set_as_rabbitmqs_has() -> None:
    assert wire.nack_frame(3, 5, False) == frame.marshal(commands.Basic.Nack(5, False, True), 3)
    assert wire.nack_frame(3, 5, True) == frame.marshal(commands.Basic.Nack(5, True, True), 3)


@pytest.mark.parametrize("redelivered", [False, True])
def test_a_delivery_is_prefix_tag_and_suffix(redelivered: bool) -> None:
    address = Address("amq.topic", "a.b")
    suffix = address.suffix_redelivered if redelivered else address.suffix
    made = wire.deliver_prefix(9, "ctag", len(suffix)) + wire.TAG.pack(77) + suffix
    assert made == frame.marshal(commands.Basic.Deliver("ctag", 77, redelivered, "amq.topic", "a.b"), 9)


@pytest.mark.parametrize("redelivered", [False, True])
def test_a_get_ok_tells_how_many_messages_are_left(redelivered: bool) -> None:
    made = wire.get_ok_frame(9, 77, Address("x", "key"), redelivered, 4_000_000_000)
    assert made == frame.marshal(commands.Basic.GetOk(77, redelivered, "x", "key", 4_000_000_000), 9)


def test_a_return_names_code_text_and_address() -> None:
    made = wire.return_frame(9, 312, "NO_ROUTE", Address("x", "key"))
    assert made == frame.marshal(commands.Basic.Return(312, "NO_ROUTE", "x", "key"), 9)


# Texts of errors, as in RabbitMQ


def test_an_oversized_frame_is_reported_with_the_largest_payload() -> None:
    error = wire.frame_too_large(3, 5000, 4096)
    assert isinstance(error, UnreadableFrame)
    assert error.reply_text == "FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,5000,4088}"


def test_a_wrong_frame_end_is_reported_with_its_octet() -> None:
    error = wire.bad_frame_end(1, b"\x00\x01", 65)
    assert isinstance(error, UnreadableFrame)
    assert error.reply_text == "FRAME_ERROR - type 1, all octets = <<0,1>>: {invalid_frame_end_marker,65}"


def test_sixteen_octets_of_a_long_payload_are_quoted() -> None:
    error = wire.unknown_frame(9, bytes(range(200, 217)))
    assert isinstance(error, FrameError)
    octets = ",".join(map(str, range(200, 216)))
    assert error.reply_text == f"FRAME_ERROR - type 9, first 16 octets = <<{octets}>>: unknown_frame"


def test_a_payload_of_sixteen_octets_is_quoted_in_full() -> None:
    assert "all octets = <<0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0>>" in str(wire.unknown_frame(9, bytes(16)))


def test_an_unexpected_frame_is_reported_with_its_payload() -> None:
    error = wire.unexpected_frame(2, b"header")
    assert isinstance(error, UnexpectedFrame)
    assert error.reply_text == 'UNEXPECTED_FRAME - type 2, all octets = <<"header">>'


def test_errors_about_frames_name_no_method() -> None:
    errors = [
        wire.frame_too_large(3, 5000, 4096),
        wire.bad_frame_end(1, b"", 0),
        wire.unknown_frame(9, b""),
        wire.unexpected_frame(2, b""),
        wire.unexpected_content(),
    ]
    assert [error.method_id for error in errors] == [0] * 5
