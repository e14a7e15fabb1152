from __future__ import annotations

import pika
import pika.frame
import pytest
from pika import spec

from pyspark_amqp.errors import BrokerError
from pyspark_amqp.frame_parser import HEARTBEAT_FRAME, Delivery, Frames


def delivered(tag: int, body: bytes, *, channel: int = 1, part: int = 100, key: str = "key") -> bytes:
    """Return a delivery encoded by pika."""
    method = spec.Basic.Deliver("ctag", tag, tag % 2 == 0, "exchange", key)
    frames = [
        pika.frame.Method(channel, method),
        pika.frame.Header(channel, len(body), pika.BasicProperties(app_id="a")),
    ]
    frames += [pika.frame.Body(channel, body[start : start + part]) for start in range(0, len(body), part)]
    return b"".join(frame.marshal() for frame in frames)


def expected(tag: int, body: bytes) -> Delivery:
    header = pika.frame.Header(1, len(body), pika.BasicProperties(app_id="a")).marshal()[7:-1]
    return Delivery(tag, tag % 2 == 0, b"exchange", b"key", header, body)


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_deliveries_may_arrive_in_any_pieces(size: int) -> None:
    bodies = [b"first", b"", b"x" * 1234, b"last"]
    octets = HEARTBEAT_FRAME.join(delivered(tag, body) for tag, body in enumerate(bodies, 1))
    frames = Frames()
    found = [
        delivery for start in range(0, len(octets), size) for delivery in frames.feed(octets[start : start + size])
    ]
    assert found == [expected(tag, body) for tag, body in enumerate(bodies, 1)]


def test_deliveries_of_an_earlier_channel_are_skipped() -> None:
    frames = Frames()
    frames.channel = 2
    assert [delivery.tag for delivery in frames.feed(delivered(1, b"a") + delivered(2, b"b", channel=2))] == [2]


def test_other_methods_are_kept_in_order() -> None:
    frames = Frames()
    ack = pika.frame.Method(1, spec.Basic.Ack(7, True)).marshal()
    content = delivered(1, b"body")
    content = content[len(pika.frame.Method(1, spec.Basic.Deliver("ctag", 1, False, "exchange", "key")).marshal()) :]
    returned = pika.frame.Method(1, spec.Basic.Return(312, "NO_ROUTE", "", "k")).marshal() + content
    assert frames.feed(returned + ack + delivered(3, b"c")) == [expected(3, b"c")]
    assert [type(method) for _, method in frames.methods] == [spec.Basic.Return, spec.Basic.Ack]


@pytest.mark.parametrize(
    "octets",
    [
        b"\x01\x00\x01\x00\x00\x00\x04abcdX",
        b"\x01\x00\x01\x00\x00\x00\x04\x00\x63\x00\x63\xce",
    ],
    ids=["a frame without its end", "a method that there is not"],
)
def test_invalid_amqp_is_refused(octets: bytes) -> None:
    with pytest.raises(BrokerError):
        Frames().feed(octets)
