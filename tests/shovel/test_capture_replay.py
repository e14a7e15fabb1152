"""Captured messages are published when they are due, and confirms counted; the test moves the clock."""

from __future__ import annotations

import math
from itertools import count
from typing import Any

import pytest
from pamqp import commands, frame

from amqp_broker.amqp.message import Address, Message, Properties
from amqp_broker.broker.broker import Broker
from amqp_broker.session.session import Session
from amqp_broker.settings.settings import Settings
from amqp_broker.shovel.amqp_client import Client, Lost
from amqp_broker.shovel.capture_replay import Item, Replay
from tests.shovel.pair import NOW, bodies, declare

MS = 1000


class Stage:
    """A replay and the broker that it publishes to, with a queue `q`."""

    def __init__(self, *items: Item, speed: float = 1.0, **given: Any) -> None:
        numbers = count()
        self.broker = Broker(Settings(), lambda size: next(numbers).to_bytes(size, "big"))
        self.broker.now = NOW
        self.broker.add_defaults()
        self.queue = declare(self.broker, "q")
        self.replay = Replay(iter(items), speed, **given)
        self.client = Client(self.replay, "guest", "guest", "/", 0, "test")
        self.session = Session(self.broker, [], "127.0.0.1", 0, "127.0.0.1", 5672, NOW)
        self.run()

    def run(self) -> None:
        """Move octets in both directions until there are none."""
        while said := b"".join(self.client.outbox):
            self.client.outbox = []
            self.session.receive(said, NOW)
            self.client.receive(b"".join(self.session.outbox.take()))

    def tick(self, now_us: int) -> int | None:
        due_us = self.replay.tick(now_us)
        self.run()
        return due_us

    @property
    def counts(self) -> tuple[int, int, int, int]:
        replay = self.replay
        return replay.published, replay.confirmed, replay.nacked, replay.returned


def item(at_us: int, body: bytes = b"", key: str = "q", *, mandatory: bool = False, **properties: Any) -> Item:
    return at_us, Message.build(Address(properties.pop("exchange", ""), key), Properties(**properties), body), mandatory


def three() -> list[Item]:
    """Return three messages, the first of which was captured 5 ms after the start."""
    return [item(5 * MS, b"1"), item(15 * MS, b"2"), item(115 * MS, b"3")]


def test_messages_keep_their_distance_from_the_first_one() -> None:
    stage = Stage(*three())
    assert stage.tick(1000 * MS) == 1010 * MS
    assert bodies(stage.queue) == [b"1"]
    assert stage.tick(1009 * MS) == 1010 * MS
    assert stage.tick(1010 * MS) == 1110 * MS
    assert bodies(stage.queue) == [b"1", b"2"]
    assert not stage.replay.is_done
    assert stage.tick(1110 * MS) is None
    assert stage.replay.is_done
    assert (stage.counts, stage.replay.late_us_max) == ((3, 3, 0, 0), 0)


@pytest.mark.parametrize(("speed", "due_us"), [(2, 5 * MS), (0.5, 20 * MS), (1000, 10)])
def test_the_time_between_messages_is_divided_by_the_speed(speed: float, due_us: int) -> None:
    assert Stage(*three(), speed=speed).tick(0) == due_us


def test_at_infinite_speed_all_messages_are_published_at_once() -> None:
    stage = Stage(*three(), speed=math.inf)
    assert stage.tick(0) is None
    assert stage.replay.is_done
    assert bodies(stage.queue) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("speed", [0, -1, math.nan, -math.inf, 1e-300])
def test_an_invalid_speed_is_refused(speed: float) -> None:
    with pytest.raises(ValueError, match=r"the speed must be 0\.001 or more"):
        Replay(iter(()), speed)


def test_a_late_tick_publishes_all_due_messages_and_notes_the_delay() -> None:
    stage = Stage(*three())
    stage.tick(0)
    assert stage.tick(60 * MS) == 110 * MS
    assert (bodies(stage.queue), stage.replay.late_us_max) == ([b"1", b"2"], 50 * MS)


def test_no_more_messages_are_unconfirmed_than_the_window_allows() -> None:
    stage = Stage(*(item(0, b"%d" % number) for number in range(5)), window=2)
    assert stage.replay.tick(0) is None
    assert (stage.replay.published, stage.replay.unconfirmed) == (2, 2)
    stage.run()
    assert (stage.replay.unconfirmed, stage.replay.is_done) == (0, False)
    stage.tick(0)
    stage.tick(0)
    assert (stage.counts, stage.replay.is_done) == ((5, 5, 0, 0), True)


def test_publishing_pauses_while_the_socket_is_full_or_the_broker_blocks() -> None:
    stage = Stage(*three(), speed=math.inf)
    stage.replay.on_full(stage.client, True)
    assert (stage.tick(0), stage.replay.published) == (None, 0)
    stage.replay.on_full(stage.client, False)
    stage.replay.on_blocked(stage.client, True)
    assert (stage.tick(0), stage.replay.published) == (None, 0)
    stage.replay.on_blocked(stage.client, False)
    stage.tick(0)
    assert stage.replay.is_done


def test_an_unroutable_mandatory_message_is_counted_as_returned() -> None:
    stage = Stage(item(0, b"lost", "nowhere", mandatory=True), item(0, b"lost", "nowhere"), speed=math.inf)
    stage.tick(0)
    assert (stage.counts, stage.replay.is_done) == ((2, 2, 0, 1), True)
    [(address, reason)] = stage.replay.returns
    assert (address.routing_key, reason) == ("nowhere", "312 NO_ROUTE")


def test_a_refused_message_is_counted_as_nacked() -> None:
    stage = Stage(item(0, b"1", "full"), item(0, b"2"), speed=math.inf)
    declare(stage.broker, "full", **{"x-max-length": 0, "x-overflow": "reject-publish"})
    stage.tick(0)
    assert (stage.counts, stage.replay.is_done) == ((2, 1, 1, 0), True)


def test_confirms_may_arrive_in_any_order_and_twice() -> None:
    stage = Stage(*(item(0) for _ in range(5)), speed=math.inf)
    replay, client = stage.replay, stage.client
    replay.tick(0)
    for tag, multiple, is_taken in ((3, False, True), (3, False, True), (9, False, True), (2, True, False)):
        replay.on_settled(client, tag, multiple, is_taken)
    assert (replay.confirmed, replay.nacked, replay.unconfirmed) == (1, 2, 2)
    replay.on_settled(client, 0, True, True)
    assert (replay.confirmed, replay.unconfirmed, replay.is_done) == (3, 0, True)


def test_a_missing_exchange_is_an_error_before_any_publish() -> None:
    names = frozenset({"", "amq.topic", "gone"})
    with pytest.raises(Lost, match="404 NOT_FOUND - no exchange 'gone' in vhost '/'"):
        Stage(item(0, b"1"), exchanges=names)


def test_another_exchange_may_take_all_messages() -> None:
    stage = Stage(item(0, b"1", exchange="gone"), speed=math.inf, exchange="amq.fanout", exchanges=frozenset({"gone"}))
    vhost = stage.broker.vhosts["/"]
    vhost.bind(vhost.exchanges["amq.fanout"], stage.queue, "", {})
    stage.tick(0)
    assert bodies(stage.queue) == [b"1"]


def test_the_user_id_of_another_user_is_removed() -> None:
    stage = Stage(item(0, user_id="alice", type="x"), item(0, user_id="guest"), speed=math.inf)
    stage.tick(0)
    told = [message.properties().as_dict() for message in stage.queue.messages()]
    assert told == [{"type": "x"}, {"user_id": "guest"}]
    assert (stage.counts, stage.replay.user_ids_left_out) == ((2, 2, 0, 0), 1)


def test_a_large_message_is_published_unchanged() -> None:
    stage = Stage(item(0, b"x" * 300_000, headers={"a": 1}), speed=math.inf)
    stage.tick(0)
    assert bodies(stage.queue) == [b"x" * 300_000]


def test_an_empty_replay_is_done_at_once() -> None:
    stage = Stage()
    assert (stage.tick(0), stage.replay.is_done) == (None, True)


def test_an_unsolicited_cancel_raises_lost() -> None:
    stage = Stage()
    with pytest.raises(Lost, match="cancelled a consumer"):
        stage.client.receive(frame.marshal(commands.Basic.Cancel("x"), 1))
