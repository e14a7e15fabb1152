from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pamqp import commands

from tests.broker.advising import DAY_MS, MINUTE_MS, consume, declare, habits_in, leave, only
from tests.peer import Lab, Peer

# Channels and connections


def send_one(peer: Peer, number: int) -> None:
    peer.open_channel(number)
    peer.publish("orders", b"m", channel=number)
    peer.call(commands.Channel.Close(200, "", 0, 0), number)


def test_a_channel_per_message_is_reported(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    for _ in range(19):
        send_one(peer, 2)
    assert habits_in(lab) == []
    send_one(peer, 2)
    assert only(lab, "channel-per-message").connection == peer.session.name
    for _ in range(20):
        send_one(peer, 2)
    assert only(lab, "channel-per-message").count == 2


def test_a_channel_now_and_then_is_no_habit(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    for _ in range(60):
        send_one(peer, 2)
        lab.advance(10_000)
    assert habits_in(lab) == []


def test_channels_that_close_with_their_connection_are_not_counted(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    for number in range(2, 60):
        peer.open_channel(number)
        peer.publish("orders", b"m", channel=number)
    peer.disconnect()
    assert habits_in(lab) == []


def connect_for_one(lab: Lab, messages: int = 1) -> None:
    peer = lab.connect()
    for _ in range(messages):
        peer.publish("orders", b"m")
    peer.disconnect()


def test_a_connection_per_message_is_reported(lab: Lab) -> None:
    declare(lab.connect(), "orders")
    for _ in range(19):
        connect_for_one(lab)
    assert habits_in(lab) == []
    connect_for_one(lab)
    advice = only(lab, "connection-per-message")
    assert (advice.place.user, advice.place.queue) == ("guest", "")


@pytest.mark.parametrize("messages", [0, 2])
def test_connections_for_more_or_nothing_are_no_habit(lab: Lab, messages: int) -> None:
    declare(lab.connect(), "orders")
    for _ in range(60):
        connect_for_one(lab, messages)
    assert habits_in(lab) == []


# Queues


def test_leaked_queues_are_reported(lab: Lab) -> None:
    leave(lab, 19)
    lab.advance(MINUTE_MS)
    assert habits_in(lab) == []
    leave(lab, 1)
    assert habits_in(lab) == []
    lab.advance(MINUTE_MS)
    advice = only(lab, "leaked-queues")
    assert (advice.place.queue, advice.count) == ("amq.gen-*", 20)
    leave(lab, 5)
    lab.advance(MINUTE_MS)
    assert only(lab, "leaked-queues").count == 25


@pytest.mark.parametrize(
    "options", [{"exclusive": True, "durable": False}, {"arguments": {"x-expires": 10 * MINUTE_MS}}]
)
def test_queues_that_go_by_themselves_do_not(lab: Lab, options: dict[str, Any]) -> None:
    peer = lab.connect()
    for _ in range(60):
        declare(peer, "", **options)
    lab.advance(MINUTE_MS)
    assert habits_in(lab) == []


def test_an_unused_queue_is_reported_after_a_day(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    lab.advance(DAY_MS - 1)
    assert habits_in(lab) == []
    lab.advance(1)
    assert only(lab, "unused-queue").place.queue == "orders"


def _bind(peer: Peer) -> None:
    peer.call(commands.Queue.Bind(queue="orders", exchange="amq.topic"))


def _publish(peer: Peer) -> None:
    peer.publish("orders", b"m")


def _consume(peer: Peer) -> None:
    consume(peer, "orders", prefetch=1)


def _dead_letter(peer: Peer) -> None:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"}
    declare(peer, "work", arguments=arguments)
    peer.publish("work", b"m")


@pytest.mark.parametrize("use", [_bind, _publish, _consume, _dead_letter])
def test_a_queue_that_something_leads_to_is_used(lab: Lab, use: Callable[[Peer], None]) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    use(peer)
    lab.advance(2 * DAY_MS)
    assert habits_in(lab) == []
