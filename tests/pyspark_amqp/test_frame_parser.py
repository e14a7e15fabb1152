from __future__ import annotations

from typing import Any

import pika
import pika.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pika import spec

from pyspark_amqp.content_header import HEADERS, OFFSET_HEADER, decode, decode_table
from pyspark_amqp.delivery_run import Run, singles
from pyspark_amqp.errors import BrokerError
from pyspark_amqp.frame_parser import HEARTBEAT_FRAME, Frames


def delivered(tag: int, body: bytes, *, channel: int = 1, part: int = 100, key: str = "key") -> bytes:
    """Return a delivery encoded by pika."""
    method = spec.Basic.Deliver("ctag", tag, False, "exchange", key)
    frames = [
        pika.frame.Method(channel, method),
        pika.frame.Header(channel, len(body), pika.BasicProperties(app_id="a")),
    ]
    frames += [pika.frame.Body(channel, body[start : start + part]) for start in range(0, len(body), part)]
    return b"".join(frame.marshal() for frame in frames)


def expected(tag: int, body: bytes) -> Run:
    header = pika.frame.Header(1, len(body), pika.BasicProperties(app_id="a")).marshal()[7:-1]
    return Run(tag, False, b"exchange", b"key", header, [body])


def fed(frames: Frames, octets: bytes, size: int | None = None) -> list[Run]:
    """Return the deliveries one by one; `size` octets are read at once."""
    size = size or len(octets)
    reads = [octets[start : start + size] for start in range(0, len(octets), size)]
    return [one for read in reads for run in frames.feed(read) for one in singles(run)]


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_deliveries_may_arrive_in_any_pieces(size: int) -> None:
    bodies = [b"first", b"", b"x" * 1234, b"last"]
    octets = HEARTBEAT_FRAME.join(delivered(tag, body) for tag, body in enumerate(bodies, 1))
    assert fed(Frames(), octets, size) == [expected(tag, body) for tag, body in enumerate(bodies, 1)]


def test_deliveries_after_one_another_may_arrive_in_any_pieces() -> None:
    octets = b"".join(delivered(tag, b"x" * 30) for tag in range(1, 6))
    for size in range(1, len(octets)):
        assert fed(Frames(), octets, size) == [expected(tag, b"x" * 30) for tag in range(1, 6)]


def test_deliveries_of_an_earlier_channel_are_skipped() -> None:
    frames = Frames()
    frames.channel = 2
    assert [run.tag for run in frames.feed(delivered(1, b"a") + delivered(2, b"b", channel=2))] == [2]


def test_other_methods_are_kept_in_order() -> None:
    frames = Frames()
    ack = pika.frame.Method(1, spec.Basic.Ack(7, True)).marshal()
    content = delivered(1, b"body")
    content = content[len(pika.frame.Method(1, spec.Basic.Deliver("ctag", 1, False, "exchange", "key")).marshal()) :]
    returned = pika.frame.Method(1, spec.Basic.Return(312, "NO_ROUTE", "", "k")).marshal() + content
    assert frames.feed(returned + ack + delivered(3, b"c")) == [expected(3, b"c")]
    assert [type(method) for _, method in frames.methods] == [spec.Basic.Return, spec.Basic.Ack]


KINDS: list[dict[str, Any]] = [
    {},
    {"message_id": "a"},
    {"message_id": "b"},
    {"headers": {"x-stream-offset": pika.compat.long(0)}},
    {"headers": {"x-stream-offset": pika.compat.long(0), "a": "b"}, "content_type": "text/plain"},
    {"headers": {"a": "b", "x-stream-offset": pika.compat.long(0)}},
]


def varied(
    tag: int, kind: int, body: bytes, key: str, is_redelivered: bool
) -> tuple[bytes, tuple[int, bool, bytes, bytes, Any, str | None]]:
    """Return a delivery encoded by pika, and its expected fields."""
    properties = {name: dict(value) if name == "headers" else value for name, value in KINDS[kind].items()}
    if "headers" in properties and next(iter(properties["headers"])) == OFFSET_HEADER:
        properties["headers"][OFFSET_HEADER] = pika.compat.long(tag)
    header = pika.frame.Header(1, len(body), pika.BasicProperties(**properties))
    frames = [pika.frame.Method(1, spec.Basic.Deliver("ctag", tag, is_redelivered, "exchange", key)), header]
    frames += [pika.frame.Body(1, body)] if body else []
    values, problem = decode(header.marshal()[7:-1])
    values[HEADERS] = values[HEADERS] and offset_free(values[HEADERS])
    facts = (tag, is_redelivered, key.encode(), body, values, problem)
    return b"".join(frame.marshal() for frame in frames), facts


def offset_free(table: bytes) -> dict[str, Any]:
    return {name: value for name, value in decode_table(table)[0].items() if name != OFFSET_HEADER}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(range(len(KINDS))),
            st.sampled_from([b"", b"a", b"body", bytes(range(256)) * 5]),
            st.sampled_from(["k", "key"]),
            st.booleans(),
            st.integers(1, 4),
        ),
        max_size=12,
    ),
    st.integers(1, 4000),
)
def test_deliveries_that_are_alike_are_read_as_others_are(
    runs: list[tuple[int, bytes, str, bool, int]], size: int
) -> None:
    made: list[tuple[bytes, Any]] = []
    for kind, body, key, is_redelivered, count in runs:
        made += [varied(len(made) + number, kind, body, key, is_redelivered) for number in range(count)]
    octets = b"".join(part for part, _ in made)
    found = []
    for one in fed(Frames(), octets, size):
        values, problem = decode(one.header)
        values[HEADERS] = values[HEADERS] and offset_free(values[HEADERS])
        assert one.exchange == b"exchange"
        assert one.offset in (None, one.tag)
        found.append((one.tag, one.redelivered, one.routing_key, *one.bodies, values, problem))
    assert found == [facts for _, facts in made]


def test_deliveries_that_differ_in_tag_offset_and_body_are_a_run() -> None:
    _, run = Frames().feed(b"".join(varied(tag, 4, b"a" * tag, "k", False)[0] for tag in range(1, 6)))
    assert (run.tag, run.offset, run.bodies) == (2, 2, [b"aa", b"aaa", b"aaaa", b"aaaaa"])


def test_a_run_ends_where_tags_or_offsets_leave_a_gap() -> None:
    octets = b"".join(delivered(tag, b"a") for tag in (1, 2, 3, 5, 6))
    assert [(run.tag, run.count) for run in Frames().feed(octets)] == [(1, 1), (2, 2), (5, 2)]
    # Offsets are the tags here; the second half has lower tags.
    octets = b"".join(varied(tag, 3, b"a", "k", False)[0] for tag in (1, 2, 3, 4))
    gap = octets.replace((4).to_bytes(8, "big"), (9).to_bytes(8, "big")).replace(
        b"\x00\x3c\x00\x3c\x04ctag" + (9).to_bytes(8, "big"), b"\x00\x3c\x00\x3c\x04ctag" + (4).to_bytes(8, "big")
    )
    assert [(run.tag, run.offset, run.count) for run in Frames().feed(gap)] == [(1, 1, 1), (2, 2, 2), (4, 9, 1)]


def test_alike_deliveries_share_a_header_wherever_a_read_ends() -> None:
    octets = b"".join(delivered(tag, b"x" * 30) for tag in range(1, 6))
    begin = len(delivered(1, b"x" * 30)) * 2
    for end in range(begin, len(octets)):
        frames = Frames()
        found = frames.feed(octets[:end]) + frames.feed(octets[end:])
        assert len({id(run.header) for run in found[1:]}) == 1


def test_alike_deliveries_of_an_earlier_channel_are_skipped() -> None:
    frames = Frames()
    assert len(fed(frames, b"".join(delivered(tag, b"a") for tag in (1, 2, 3)))) == 3
    frames.channel = 2
    assert frames.feed(delivered(4, b"a")) == []


def test_an_alike_delivery_without_the_end_of_its_frame_is_refused() -> None:
    frames = Frames()
    assert len(fed(frames, b"".join(delivered(tag, b"a") for tag in (1, 2, 3)))) == 3
    with pytest.raises(BrokerError):
        frames.feed(delivered(4, b"a")[:-1] + b"\x00" + HEARTBEAT_FRAME)


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
