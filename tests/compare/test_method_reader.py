from __future__ import annotations

import pytest
from pamqp import commands

from amqp_broker.compare.method_reader import FrameSplitter, MethodReader, Unreadable
from tests.compare.three import said

WORDS = said(
    commands.Basic.Deliver, body=b"x" * 300_000, delivery_tag=1, consumer_tag="c", exchange="", routing_key="q"
)


@pytest.mark.parametrize("step", [1000, 7, 131072, len(WORDS)])
def test_content_may_arrive_in_any_pieces(step: int) -> None:
    listener = MethodReader()
    heard = [one for start in range(0, len(WORDS), step) for one in listener.hear(WORDS[start : start + step])]
    (only,) = heard
    assert only.content is not None
    assert (only.method.delivery_tag, only.content.body_bytes) == (1, 300_000)


def test_contents_of_several_channels_may_interleave() -> None:
    listener = MethodReader()
    first, second = (said(commands.Basic.Return, number, body=b"m" * number) for number in (1, 2))
    heard = list(listener.hear(first[:30])) + list(listener.hear(first[30:] + second))
    assert [one.channel for one in heard] == [1, 2]


def test_an_empty_body_ends_with_its_header() -> None:
    (only,) = MethodReader().hear(said(commands.Basic.Return, body=b""))
    assert only.content is not None
    assert only.content.body_bytes == 0


@pytest.mark.parametrize("octets", [b"\x07\0\0\0\0\0\0\xce", b"\x01\0\0\x7f\xff\xff\xff\0", b"\x08\0\0\0\0\0\0\0"])
def test_an_invalid_frame_raises_after_the_valid_ones(octets: bytes) -> None:
    frames = FrameSplitter()
    cut = frames.cut(said(commands.Channel.Open) + octets)
    assert next(cut).channel == 1
    with pytest.raises(Unreadable):
        next(cut)
    assert frames.take_partial_frame() == octets


def test_content_without_a_method_raises() -> None:
    with pytest.raises(Unreadable):
        list(MethodReader().hear(said(commands.Basic.Return, body=b"m")[20:]))
