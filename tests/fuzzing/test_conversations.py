"""A short run of the fuzzer with a fixed seed, and whether it sees what it looks for.

Bugs are planted by replacing methods of classes, so this needs the interpreted code.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from amqp_broker.amqp import frames as wire
from amqp_broker.amqp.connection_states import ENDED
from amqp_broker.amqp.property_shapes import PropertyShapes
from amqp_broker.broker.broker import Broker
from amqp_broker.session.channel.channel_consumer import ChannelConsumer
from amqp_broker.session.channel.confirms import Confirms
from amqp_broker.session.session import Session
from amqp_broker.session.wire.outbox import Outbox
from amqp_broker.session.wire.reader import FrameReader
from tests.fuzzing.conversations import case, fuzz, try_case
from tests.fuzzing.target import Failure
from tests.mutations import mutate, streams

SEED = 1


def test_sessions_survive_mutated_bytes() -> None:
    assert fuzz(SEED, range(40)) == 40


@pytest.mark.parametrize("number", range(len(streams())))
def test_the_streams_themselves_are_fine(number: int) -> None:
    try_case(streams()[number], Random(SEED))


def test_a_case_is_the_same_every_time() -> None:
    bases = streams()
    assert case(SEED, 7, bases)[0] == case(SEED, 7, bases)[0] != case(SEED, 8, bases)[0]


def test_most_mutated_streams_are_not_what_they_were() -> None:
    bases, chance = streams(), Random(SEED)
    assert sum(mutate(chance, bases[0], bases) != bases[0] for _ in range(100)) > 70


def forget_unfinished(receive: Callable[[FrameReader, bytes, int], None]) -> Any:
    def wrong(self: FrameReader, data: bytes, now: int) -> None:
        if len(self._pending) > 20:
            self._pending.clear()
        receive(self, data, now)

    return wrong


class EndlessShapes(PropertyShapes):
    @property
    def size_bytes(self) -> int:
        return 1 << 20


def never_forget(receive: Callable[[FrameReader, bytes, int], None]) -> Any:
    def wrong(self: FrameReader, data: bytes, now: int) -> None:
        receive(self, data, now)
        session = self._session
        if session.state is not ENDED:
            session.shapes = EndlessShapes(session.shapes.sorts)

    return wrong


def confirm_twice(send: Callable[[Confirms, int, list[int]], None]) -> Any:
    def wrong(self: Confirms, until: int, rejected: list[int]) -> None:
        confirmed = self._channel.confirmed_count
        send(self, until, rejected)
        self._channel.confirmed_count = confirmed
        send(self, until, rejected)

    return wrong


def stumble(deliver: Callable[..., None]) -> Any:
    def wrong(self: ChannelConsumer, *arguments: Any) -> None:
        raise ValueError("a bug")

    return wrong


def send_garbage(append: Callable[..., None]) -> Any:
    def wrong(self: Outbox, *pieces: bytes) -> None:
        append(self, *(piece[:-1] for piece in pieces))

    return wrong


def keep_connections(dismiss: Callable[..., None]) -> Any:
    return lambda self, connection: None


def go_on_after_close(teardown: Callable[[Session], None]) -> Any:
    def wrong(self: Session) -> None:
        teardown(self)
        for number in self.closing_channels:
            self.outbox.append(wire.ack_frame(number, 1, False))

    return wrong


@pytest.mark.parametrize(
    ("owner", "name", "make"),
    [
        (FrameReader, "receive", forget_unfinished),
        (FrameReader, "receive", never_forget),
        (Confirms, "send", confirm_twice),
        (ChannelConsumer, "deliver", stumble),
        (Outbox, "append", send_garbage),
        (Broker, "dismiss", keep_connections),
        (Session, "teardown", go_on_after_close),
    ],
)
def test_a_planted_bug_is_found(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, make: Callable[[Any], Any]
) -> None:
    monkeypatch.setattr(owner, name, make(getattr(owner, name)))
    with pytest.raises(Failure, match=r"again: python -m tests\.fuzzing --seed 1 --case "):
        fuzz(SEED, range(400))
