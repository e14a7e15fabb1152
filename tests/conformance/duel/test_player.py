"""The play of a program at a broker in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pamqp.commands import Basic, Queue

from amqp_broker.conformance.duel.player import Pace, Player
from amqp_broker.conformance.duel.steps import At, Call, End, Http, Name, Program, Publish, Settle
from amqp_broker.conformance.duel.watching import Observer, WatchedLab
from amqp_broker.conformance.terms import NO_API, Skipped, Terms
from tests.conformance.broker_under_test import BrokerUnderTest

Q = Name("q0")
DECLARE = Call(At(), Queue.Declare, {"queue": Q, "durable": True})


@pytest.fixture(name="play")
def _play(broker: BrokerUnderTest) -> Iterator[list[Player]]:
    players: list[Player] = []
    yield players
    for player in players:
        player.clean_up()
        player.observer.close()


def played(broker: BrokerUnderTest, play: list[Player], program: Program) -> list[list[str]]:
    player = Player(WatchedLab(broker), Observer(broker, Terms()), Pace(quiet_s=0.0))
    play.append(player)
    return player.play(program)


def test_messages_that_are_left_are_taken_at_the_end(broker: BrokerUnderTest, play: list[Player]) -> None:
    windows = played(broker, play, (DECLARE, Publish(At(), {"routing_key": Q}, 2)))
    assert [line for line in windows[-1] if "body" in line] == ["lab     body=b'1'", "lab     body=b'2'"]


def test_messages_of_a_stream_are_read_at_the_end(broker: BrokerUnderTest, play: list[Player]) -> None:
    declare = Call(At(), Queue.Declare, {"queue": Q, "durable": True, "arguments": {"x-queue-type": "stream"}})
    windows = played(broker, play, (declare, Publish(At(), {"routing_key": Q}, 2)))
    assert [line for line in windows[-1] if "body" in line] == [
        "lab     headers={x-stream-offset: l0} delivery_mode=1 body=b'1'",
        "lab     headers={x-stream-offset: l1} delivery_mode=1 body=b'2'",
    ]


def test_a_channel_that_was_closed_is_opened_again(broker: BrokerUnderTest, play: list[Player]) -> None:
    missing = Call(At(), Queue.Declare, {"queue": Name("q1"), "passive": True})
    windows = played(broker, play, (missing, DECLARE))
    assert "channel.close reply_code=404" in windows[0][0]
    assert windows[1] == [
        "a1 queue.declare-ok queue='q0' message_count=0 consumer_count=0",
        "q0: 0 ready, 0 consumers",
    ]


def test_a_settlement_of_nothing_is_left_out(broker: BrokerUnderTest, play: list[Player]) -> None:
    windows = played(broker, play, (DECLARE, Settle(At(), "ack", 0, {})))
    assert windows[1] == ["q0: 0 ready, 0 consumers"]


def test_an_unacked_message_comes_back_after_a_reset(broker: BrokerUnderTest, play: list[Player]) -> None:
    get = Call(At(1), Basic.Get, {"queue": Q})
    program = (DECLARE, Publish(At(), {"routing_key": Q}), get, End(1, is_reset=True))
    assert played(broker, play, program)[3] == ["q0: 1 ready, 0 consumers"]


def test_a_play_ends_with_an_unexpected_window(broker: BrokerUnderTest, play: list[Player]) -> None:
    player = Player(WatchedLab(broker), Observer(broker, Terms()), Pace(quiet_s=0.0))
    play.append(player)
    assert len(player.play((DECLARE, DECLARE), expected=[["something else"]])) == 1


def test_a_program_with_requests_is_skipped_without_the_http_api(broker: BrokerUnderTest, play: list[Player]) -> None:
    with pytest.raises(Skipped, match=NO_API):
        played(broker, play, (Http("GET", "queues/{vhost}"),))
