"""Bad input: each invalid frame gets RabbitMQ's code and text, and affects no other connection."""

from __future__ import annotations

import random

import pytest
from pamqp import frame
from pamqp.commands import Basic, Channel, Connection, Queue

from tests.mutations import PROTOCOL_HEADER
from tests.peer import Lab, Peer, blamed, publish_bytes

QOS = frame.marshal(Basic.Qos(prefetch_count=1), 1)[7:-1]
PUBLISH = frame.marshal(Basic.Publish(routing_key="nowhere"), 1)
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8


def wire(kind: int, payload: bytes = b"", channel: int = 1, end: int = 0xCE) -> bytes:
    return bytes([kind]) + channel.to_bytes(2, "big") + len(payload).to_bytes(4, "big") + payload + bytes([end])


def content_header(
    size: int, class_id: int = 60, weight: int = 0, properties: bytes = b"\0\0", channel: int = 1
) -> bytes:
    return wire(
        HEADER, class_id.to_bytes(2, "big") + weight.to_bytes(2, "big") + size.to_bytes(8, "big") + properties, channel
    )


def close_of(peer: Peer, data: bytes) -> Connection.Close:
    peer.send_bytes(data)
    close = peer.expect(Connection.Close, channel=0)
    peer.expect_nothing()
    return close


SOCKET_IS_USELESS = [
    (wire(METHOD, QOS, end=0), "type 1, all octets = <<0,60,0,10,0,0,0,0,0,1,0>>: {invalid_frame_end_marker,0}"),
    (wire(METHOD, QOS, end=0xCF), "type 1, all octets = <<0,60,0,10,0,0,0,0,0,1,0>>: {invalid_frame_end_marker,207}"),
    (
        wire(METHOD, b"\0" * 17, end=1),
        "type 1, first 16 octets = <<0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0>>: {invalid_frame_end_marker,1}",
    ),
    (wire(HEARTBEAT, channel=0, end=0), "type 8, all octets = <<>>: {invalid_frame_end_marker,0}"),
    (b"\x01\0\1" + (131_073).to_bytes(4, "big") + b"x", "type 1, all octets = <<>>: {frame_too_large,131073,131064}"),
    (b"\xff" * 8, "type 255, all octets = <<>>: {frame_too_large,4294967295,131064}"),
]


@pytest.mark.parametrize(("data", "text"), SOCKET_IS_USELESS)
def test_a_frame_without_its_end_mark_is_refused_and_the_socket_dropped_after_three_seconds(
    lab: Lab, peer: Peer, data: bytes, text: str
) -> None:
    close = close_of(peer, data)
    assert (close.reply_code, close.reply_text) == (501, f"FRAME_ERROR - {text}")
    assert (close.class_id, close.method_id) == (0, 0)
    peer.send(Connection.CloseOk(), channel=0)
    lab.advance(2999)
    assert not peer.is_dropped
    lab.advance(1)
    assert peer.is_dropped


CLOSES = [
    (wire(9, b"12345"), 501, 'FRAME_ERROR - type 9, all octets = <<"12345">>: unknown_frame', 0),
    (wire(0, channel=0), 501, "FRAME_ERROR - type 0, all octets = <<>>: unknown_frame", 0),
    (wire(METHOD), 501, "FRAME_ERROR - type 1, all octets = <<>>: unknown_frame", 0),
    (wire(METHOD, b"\0\x3c\0"), 501, "FRAME_ERROR - type 1, all octets = <<0,60,0>>: unknown_frame", 0),
    (wire(HEARTBEAT), 505, "UNEXPECTED_FRAME - type 8, all octets = <<>>", 0),
    (wire(HEARTBEAT, b"hello", channel=0), 501, 'FRAME_ERROR - type 8, all octets = <<"hello">>: unknown_frame', 0),
    (wire(HEADER, channel=0), 505, "UNEXPECTED_FRAME - type 2, all octets = <<>>", 0),
    (wire(BODY, b"hello", channel=0), 505, 'UNEXPECTED_FRAME - type 3, all octets = <<"hello">>', 0),
    (
        wire(METHOD, Queue.Declare().index.to_bytes(4, "big") + b"\0\0\1q"),
        501,
        "FRAME_ERROR - cannot decode <<0,0,1,113>>",
        Queue.Declare.index,
    ),
    (
        wire(METHOD, QOS + b"more"),
        501,
        "FRAME_ERROR - cannot decode <<0,0,0,0,0,1,0,109,111,114,101>>",
        Basic.Qos.index,
    ),
    (wire(METHOD, PUBLISH[7:11]) + content_header(0), 501, "FRAME_ERROR - cannot decode <<>>", Basic.Publish.index),
    (
        wire(METHOD, PUBLISH[7:14]) + content_header(0),
        501,
        "FRAME_ERROR - cannot decode <<0,0,0>>",
        Basic.Publish.index,
    ),
    (
        wire(METHOD, PUBLISH[7:-1] + b"!") + content_header(0),
        501,
        "FRAME_ERROR - cannot decode <<0,0,0,7,110,111,119,104,101,114,101,0,33>>",
        Basic.Publish.index,
    ),
    (
        wire(METHOD, Queue.Declare.index.to_bytes(4, "big") + b"\0\0\2\xff\xfe\1\0\0\0\0"),
        501,
        "FRAME_ERROR - Malformed UTF-8 in shortstr",
        0,
    ),
    (content_header(5), 505, "UNEXPECTED_FRAME - expected method frame, got non method frame instead", 0),
    (wire(BODY, b"hello"), 505, "UNEXPECTED_FRAME - expected method frame, got non method frame instead", 0),
    (
        PUBLISH + wire(BODY, b"hello"),
        505,
        "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead",
        Basic.Publish.index,
    ),
    (
        PUBLISH + wire(METHOD, QOS),
        505,
        "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead",
        Basic.Publish.index,
    ),
    (
        PUBLISH + PUBLISH,
        505,
        "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead",
        Basic.Publish.index,
    ),
    (
        PUBLISH + content_header(0, weight=1),
        505,
        "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead",
        Basic.Publish.index,
    ),
    (
        PUBLISH + wire(HEADER, b"\0\x3c"),
        505,
        "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead",
        Basic.Publish.index,
    ),
    (
        PUBLISH + content_header(1, properties=b"\0") + wire(BODY, b"x"),
        505,
        "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead",
        Basic.Publish.index,
    ),
    (
        PUBLISH + content_header(5, class_id=10),
        505,
        "UNEXPECTED_FRAME - expected content header for class 60, got one for class 10 instead",
        Basic.Publish.index,
    ),
    (
        PUBLISH + content_header(5) + wire(METHOD, QOS),
        505,
        "UNEXPECTED_FRAME - expected content body, got non content body frame instead",
        Basic.Publish.index,
    ),
    (
        PUBLISH + content_header(5) + content_header(5),
        505,
        "UNEXPECTED_FRAME - expected content body, got non content body frame instead",
        Basic.Publish.index,
    ),
    (
        PUBLISH + content_header(3) + wire(BODY, b"hello"),
        501,
        "FRAME_ERROR - content body frame exceeds remaining content size",
        Basic.Publish.index,
    ),
    (
        PUBLISH + content_header(536_870_913),
        501,
        "FRAME_ERROR - content body size 536870913 exceeds maximum allowed size 536870912",
        Basic.Publish.index,
    ),
    (
        PUBLISH + content_header(5, channel=2) + wire(BODY, b"hello"),
        505,
        "UNEXPECTED_FRAME - expected method frame, got non method frame instead",
        0,
    ),
    (
        content_header(5, channel=7),
        505,
        "UNEXPECTED_FRAME - expected method frame, got non method frame instead",
        0,
    ),
    (
        PUBLISH + content_header(1, weight=1) + wire(BODY, b"x"),
        505,
        "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead",
        Basic.Publish.index,
    ),
    (
        PUBLISH + content_header(5) + wire(BODY, b"hello", channel=2),
        505,
        "UNEXPECTED_FRAME - expected method frame, got non method frame instead",
        0,
    ),
    (
        PUBLISH + content_header(0) + wire(BODY),
        505,
        "UNEXPECTED_FRAME - expected method frame, got non method frame instead",
        0,
    ),
]


@pytest.mark.parametrize(("data", "code", "text", "method_id"), CLOSES)
def test_an_invalid_frame_closes_the_connection_however_reads_divide_it(
    lab: Lab, data: bytes, code: int, text: str, method_id: int
) -> None:
    for step in (len(data), 1):
        peer = lab.connect()
        peer.open_channel(2)
        for start in range(0, len(data), step):
            peer.send_bytes(data[start : start + step])
        close = peer.expect(Connection.Close, channel=0)
        assert (close.reply_code, close.reply_text) == (code, text)
        assert blamed(close) == method_id
        peer.send(Connection.CloseOk(), channel=0)
        assert peer.is_dropped


DROPS = [
    wire(METHOD, b"\0\x3c\0\x63"),  # no such method
    wire(METHOD, b"\0\x4d\0\x0a"),  # no such class
    wire(METHOD, b"\0\x0a\0\x63", channel=0),
    # a table with a value of a type that there is none
    wire(METHOD, Queue.Declare.index.to_bytes(4, "big") + b"\0\0\1q\0\0\0\0\7\1kZ1234"),
    # a table that is longer than the frame
    wire(METHOD, Queue.Declare.index.to_bytes(4, "big") + b"\0\0\1q\0\0\0\0\7\1k"),
]


@pytest.mark.parametrize("data", DROPS)
def test_an_unknown_method_drops_the_socket_without_a_close(lab: Lab, peer: Peer, data: bytes) -> None:
    peer.declare("mine", exclusive=True)
    peer.send_bytes(data)
    assert peer.is_dropped
    peer.expect_nothing()
    assert not lab.vhost.queues


@pytest.mark.parametrize(
    "method",
    [
        Channel.Open(),
        Channel.OpenOk(),
        Channel.CloseOk(),
        Channel.FlowOk(True),
        Connection.Close(200, "bye", 0, 0),
        Connection.TuneOk(10, 8192, 0),
        Queue.DeclareOk("q", 0, 0),
        Basic.CancelOk("c"),
        Basic.Deliver("c", 1, False, "", ""),
        Basic.GetEmpty(),
        Basic.Return(312, "NO_ROUTE", "", ""),
    ],
    ids=lambda method: method.name,
)
def test_a_method_that_is_not_for_a_channel_or_not_for_a_broker_is_refused(peer: Peer, method: Basic.Deliver) -> None:
    peer.send(method)
    close = peer.expect(Connection.Close, channel=0)
    second_open = (504, "CHANNEL_ERROR - second 'channel.open' seen")
    unknown = (503, "COMMAND_INVALID - unimplemented method")
    assert (close.reply_code, close.reply_text) == (second_open if isinstance(method, Channel.Open) else unknown)
    assert blamed(close) == method.index


def test_a_frame_eight_octets_above_the_limit_is_accepted(lab: Lab) -> None:
    # "off-by 1 or 8 are typical" mistakes of clients, says RabbitMQ.
    peer = lab.connect(frame_max=8192)
    peer.declare("q")
    peer.publish("q", bytes(8192))
    got = peer.get("q")
    assert got is not None
    assert got[1].body == bytes(8192)


def test_a_frame_nine_octets_above_the_limit_is_refused(lab: Lab) -> None:
    peer = lab.connect(frame_max=8192)
    close = close_of(peer, PUBLISH + content_header(8193) + wire(BODY, bytes(8193)))
    assert close.reply_text == "FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,8193,8184}"


def test_an_oversized_content_header_is_refused_even_in_a_complete_message(lab: Lab) -> None:
    peer = lab.connect(frame_max=8192)
    peer.declare("q")
    data = publish_bytes("q", b"x", headers={"large": "x" * 9000})
    close = close_of(peer, data)
    assert close.reply_text.startswith("FRAME_ERROR - type 2, all octets = <<>>: {frame_too_large,")


@pytest.mark.parametrize("flags", [b"\xff\xff", b"\x80\0", b"\x80\0\5abc", b"\x20\0\0\0\0\5\1k", b"\0\0x"])
def test_an_invalid_property_list_closes_the_connection(peer: Peer, flags: bytes) -> None:
    peer.send_bytes(PUBLISH + content_header(0, properties=flags))
    close = peer.expect(Connection.Close, channel=0)
    assert blamed(close) == Basic.Publish.index


def test_a_reply_text_is_truncated_to_the_length_of_a_short_string(peer: Peer) -> None:
    peer.send(Queue.Declare(queue="q" * 255, passive=True))
    text = peer.expect_channel_close(404)
    assert len(text) == 255
    assert text.startswith("NOT_FOUND - no queue 'qqq")
    assert text.endswith("qqq...")


def test_any_bytes_at_any_point_end_in_an_answer_or_a_close(lab: Lab) -> None:
    chance = random.Random(1)
    control = lab.connect()
    control.declare("control")
    greetings = [
        b"",
        b"AMQP\0\0\x09\1",
        b"AMQP\0\0\x09\1" + frame.marshal(Connection.StartOk({}, "PLAIN", "\0guest\0guest"), 0),
    ]
    for number in range(300):
        peer = lab.connect() if number % 2 else lab.peer()
        data = (
            chance.choice(greetings) if not number % 2 else chance.choice([b"", PUBLISH, PUBLISH + content_header(9)])
        )
        peer.send_bytes(data + chance.randbytes(chance.randrange(1, 100)))
        peer.disconnect()
    control.publish("control", b"still here")
    assert control.get("control") is not None
    assert lab.broker.connections == {control.session}


def test_a_frame_that_is_announced_too_large_before_the_login_is_refused_at_its_header(lab: Lab) -> None:
    peer = lab.peer()
    peer.send_bytes(PROTOCOL_HEADER)
    peer.expect(Connection.Start, channel=0)
    limit = lab.broker.settings.initial_frame_max
    peer.send_bytes(b"\x01\0\0" + (limit + 1).to_bytes(4, "big") + b"x")
    # A peer without a login gets no answer.
    peer.expect_nothing()
    assert peer.session.state.ignores_input
