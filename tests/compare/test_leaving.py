"""The methods after which an upstream delivers nothing more are found, however the octets are cut."""

from __future__ import annotations

import pytest
from pamqp import commands

from amqp_broker.amqp.frames import PROTOCOL_HEADER
from amqp_broker.compare.leaving import Leaving
from tests.compare.three import said

PUBLISH = said(commands.Basic.Publish, body=b"x" * 30, routing_key="q")
CANCEL = said(commands.Basic.Cancel, consumer_tag="c")
CLOSE_CHANNEL = said(commands.Channel.Close, reply_code=200)
CLOSE = said(commands.Connection.Close, 0, reply_code=200)


@pytest.mark.parametrize("method", [CANCEL, CLOSE_CHANNEL, CLOSE])
@pytest.mark.parametrize("step", [1, 3, 7, 50, 10_000])
def test_the_method_that_leaves_is_never_whole_before_its_place(method: bytes, step: int) -> None:
    octets = PROTOCOL_HEADER + PUBLISH + method + PUBLISH
    leaving, passed = Leaving(), 0
    for start in range(0, len(octets), step):
        piece = octets[start : start + step]
        for place in leaving.places(piece):
            passed += 1
            at = start + place
            assert len(PROTOCOL_HEADER + PUBLISH) <= at < len(PROTOCOL_HEADER + PUBLISH + method)
    assert passed == 1


def test_each_method_that_leaves_has_its_place() -> None:
    assert Leaving().places(PROTOCOL_HEADER + PUBLISH + CANCEL + CLOSE) == [
        len(PROTOCOL_HEADER + PUBLISH),
        len(PROTOCOL_HEADER + PUBLISH + CANCEL),
    ]


def test_nothing_leaves_after_octets_that_are_not_amqp() -> None:
    leaving = Leaving()
    assert leaving.places(b"GET / HTTP/1.1" + CLOSE) == []
    assert leaving.places(CLOSE) == []
