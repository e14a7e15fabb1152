"""Each event of the clock is listed before it happens, and happens at that time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.broker.scheduling.timers import LATEST_MS
from tests.management.asking import Desk
from tests.peer import CAPABILITIES, Peer

MINUTE_MS = 60_000


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def peer(desk: Desk) -> Peer:
    return desk.lab.connect()


def due(desk: Desk, **query: str) -> list[tuple[int, str, str]]:
    """Time from now, kind and sentence of each event."""
    status, coming = desk.get("/_broker/clock/due", **query)
    assert status == 200
    assert len(coming["events"]) <= coming["total"]
    return [(event["at_ms"] - coming["now_ms"], event["kind"], event["sentence"]) for event in coming["events"]]


def happens(desk: Desk, kind: str, has_happened: Callable[[], bool]) -> None:
    """Check that the only event is of this kind, and happens neither before its time nor later."""
    [(in_ms, listed, _)] = due(desk)
    assert listed == kind
    desk.lab.advance_clock(in_ms - 1)
    assert not has_happened()
    [(rest_ms, _, _)] = due(desk)
    assert rest_ms == 1
    desk.lab.advance_clock(1)
    assert has_happened()


def test_nothing_is_due_at_a_new_broker(desk: Desk, peer: Peer) -> None:
    peer.declare("q")
    peer.publish("q", b"1")
    assert due(desk) == []


# Queues and exchanges


@pytest.mark.parametrize("arguments", [{}, {"x-queue-type": "quorum"}, {"x-max-priority": 5}])
def test_the_first_message_that_expires_is_listed(desk: Desk, peer: Peer, arguments: dict[str, Any]) -> None:
    peer.declare("q", durable=True, arguments={**arguments, "x-message-ttl": 5000})
    peer.publish("q", b"1")
    assert due(desk) == [(5000, "message_expires", "A message of queue 'q' in vhost '/' expires.")]
    happens(desk, "message_expires", lambda: not desk.lab.vhost.queues["q"].ready_count)
    assert due(desk) == []


def test_a_message_that_is_held_back_by_the_head_is_not_listed(desk: Desk, peer: Peer) -> None:
    peer.declare("q")
    for expiration in ("9000", "3000"):
        peer.publish("q", b"1", expiration=expiration)
    assert [in_ms for in_ms, _, _ in due(desk)] == [9000]


def test_from_4_3_on_each_priority_of_a_quorum_queue_expires_by_itself() -> None:
    desk = Desk(compat="4.3")
    peer = desk.lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    peer.publish("q", b"high", priority=9, expiration="9000")
    peer.publish("q", b"low", expiration="3000")
    happens(desk, "message_expires", lambda: desk.lab.vhost.queues["q"].ready_count == 1)
    assert [in_ms for in_ms, _, _ in due(desk)] == [6000]


def test_an_unused_queue_is_listed_until_it_has_a_consumer(desk: Desk, peer: Peer) -> None:
    peer.declare("q", arguments={"x-expires": 7000})
    peer.publish("q", b"1")
    sentence = "The unused queue 'q' in vhost '/' is deleted, with 1 message."
    assert due(desk) == [(7000, "queue_expires", sentence)]
    peer.consume("q")
    assert [event for event in due(desk) if event[1] == "queue_expires"] == []
    peer.send(commands.Basic.Ack(1))
    peer.send(commands.Basic.Cancel("c"))
    happens(desk, "queue_expires", lambda: "q" not in desk.lab.vhost.queues)


def test_a_quorum_queue_does_not_expire_while_a_message_is_not_settled(desk: Desk, peer: Peer) -> None:
    peer.declare("q", durable=True, arguments={"x-expires": 7000, "x-queue-type": "quorum"})
    peer.publish("q", b"1")
    peer.get("q", no_ack=False)
    assert [kind for _, kind, _ in due(desk)] == ["channel_closed"]
    peer.send(commands.Basic.Ack(1))
    assert [kind for _, kind, _ in due(desk)] == ["queue_expires"]


def test_the_first_delayed_message_is_listed(desk: Desk, peer: Peer) -> None:
    arguments: Any = {"x-delayed-type": "direct"}
    peer.call(commands.Exchange.Declare(exchange="d", exchange_type="x-delayed-message", arguments=arguments))
    peer.declare("q")
    peer.call(commands.Queue.Bind(queue="q", exchange="d", routing_key="q"))
    for delay in (9000, 3000):
        peer.publish("q", b"1", exchange="d", headers={"x-delay": delay})
    assert due(desk) == [(3000, "delayed_message", "The first of 2 messages of exchange 'd' in vhost '/' is routed.")]
    happens(desk, "delayed_message", lambda: desk.lab.vhost.queues["q"].ready_count == 1)


def test_the_first_delayed_retry_is_listed() -> None:
    desk = Desk(compat="4.3")
    peer = desk.lab.connect()
    retries = {"x-delayed-retry-type": "all", "x-delayed-retry-min": 8000}
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", **retries})
    peer.publish("q", b"1")
    peer.get("q", no_ack=False)
    peer.send(commands.Basic.Nack(1, requeue=True))
    happens(desk, "retry", lambda: desk.lab.vhost.queues["q"].ready_count == 1)


def test_the_retention_of_a_stream_is_listed(desk: Desk, peer: Peer) -> None:
    fill_stream(desk, peer, "1h")
    queue = desk.lab.vhost.queues["q"]
    count = queue.ready_count
    happens(desk, "retention", lambda: queue.ready_count < count)
    desk.lab.vhost.policies.set(Policy("p", "^q", {"max-age": "2h"}))
    assert [(in_ms > 59 * MINUTE_MS, kind) for in_ms, kind, _ in due(desk)] == [(True, "retention")]


def fill_stream(desk: Desk, peer: Peer, age_max: str) -> None:
    """Declare stream `q`, and fill more than one chunk."""
    peer.declare("q", durable=True, arguments={"x-queue-type": "stream", "x-max-age": age_max})
    for _ in range(3):
        for _ in range(300):
            peer.publish("q", bytes(5000))
        desk.lab.advance_clock(1000)


# Consumer timeouts


def test_a_channel_that_holds_a_message_too_long_is_listed(desk: Desk, peer: Peer) -> None:
    peer.declare("q", arguments={"x-consumer-timeout": 10 * MINUTE_MS})
    for body in (b"1", b"2"):
        peer.publish("q", body)
    assert due(desk) == []
    peer.get("q", no_ack=False)
    peer.get("q", no_ack=False)
    [(in_ms, kind, sentence)] = due(desk)
    assert (in_ms, kind) == (10 * MINUTE_MS, "channel_closed")
    assert sentence.startswith("Channel 1 of ")
    assert sentence.endswith(" is closed: a message of queue 'q' in vhost '/' is not settled in time.")
    desk.lab.advance_clock(in_ms)
    assert peer.expect_channel_close(406)
    assert due(desk) == []


@pytest.mark.parametrize("timeout_ms", [1000, 59_000, 60_000, 61_000, 119_000, 125_000])
@pytest.mark.parametrize("before_ms", [0, 1, 700, 59_999, 60_000, 150_000])
def test_a_check_each_minute_finds_a_message_that_is_held_too_long(timeout_ms: int, before_ms: int) -> None:
    for short_ms in (1, 0):
        desk = Desk()
        peer = desk.lab.connect()
        peer.declare("q", arguments={"x-consumer-timeout": timeout_ms})
        peer.publish("q", b"1")
        desk.lab.advance_clock(before_ms)
        peer.get("q", no_ack=False)
        [(in_ms, _, _)] = due(desk)
        desk.lab.advance_clock(in_ms - short_ms)
        assert desk.lab.vhost.queues["q"].ready_count == 1 - short_ms


def test_from_4_3_on_only_the_messages_of_quorum_queues_are_held_too_long() -> None:
    desk = Desk(compat="4.3")
    peer = desk.lab.connect()
    peer.declare("classic", durable=True)
    peer.declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
    peer.publish("classic", b"1")
    peer.get("classic", no_ack=False)
    assert due(desk) == []
    peer.publish("quorum", b"1")
    peer.consume("quorum")
    [(in_ms, kind, sentence)] = due(desk)
    assert (in_ms, kind) == (30 * MINUTE_MS, "consumer_cancelled")
    assert sentence.startswith("Consumer 'c' of channel 1 of ")
    assert sentence.endswith(" is cancelled: a message of queue 'quorum' in vhost '/' is not settled in time.")
    desk.lab.advance_clock(in_ms)
    assert desk.lab.vhost.queues["quorum"].ready_count == 1
    assert due(desk) == []


def test_from_4_3_on_a_consumer_may_have_a_timeout_of_its_own() -> None:
    desk = Desk(compat="4.3")
    peer = desk.lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-consumer-timeout": 90 * MINUTE_MS})
    for body in (b"1", b"2"):
        peer.publish("q", body)
    arguments: Any = {"x-consumer-timeout": 700}
    peer.send(commands.Basic.Consume(queue="q", consumer_tag="c", arguments=arguments))
    happens(desk, "consumer_cancelled", lambda: desk.lab.vhost.queues["q"].ready_count == 2)


def test_from_4_3_on_the_channel_of_a_client_without_cancellations_is_closed() -> None:
    desk = Desk(compat="4.3")
    peer = desk.lab.connect(capabilities={**CAPABILITIES, "consumer_cancel_notify": False})
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-consumer-timeout": 700})
    peer.publish("q", b"1")
    peer.consume("q")
    happens(desk, "channel_closed", lambda: desk.lab.vhost.queues["q"].ready_count == 1)


# The list


def test_the_first_events_are_listed_in_their_order_and_all_are_counted(desk: Desk, peer: Peer) -> None:
    for number in (3, 1, 2):
        peer.declare(f"q{number}", arguments={"x-expires": number * 1000})
    assert [in_ms for in_ms, _, _ in due(desk)] == [1000, 2000, 3000]
    assert [in_ms for in_ms, _, _ in due(desk, limit="2")] == [1000, 2000]
    assert desk.get("/_broker/clock/due", limit="0") == (200, {"now_ms": desk.broker.now, "total": 3, "events": []})
    assert [in_ms for in_ms, _, _ in due(desk, within="2s")] == [1000, 2000]
    assert due(desk, kind="retry") == []


def test_an_event_after_the_year_9999_is_not_listed(desk: Desk, peer: Peer) -> None:
    fill_stream(desk, peer, "999999999Y")
    assert desk.lab.vhost.queues["q"].next_retention_ms > LATEST_MS
    assert due(desk) == []


def test_queues_and_channels_that_come_and_go_meanwhile_disturb_nothing(desk: Desk, peer: Peer) -> None:
    for name in ("q1", "q2"):
        peer.declare(name, arguments={"x-expires": 1000})
        peer.publish(name, b"1")
    peer.get("q1", no_ack=False)
    for number in (2, 3):
        peer.open_channel(number)
    steps = desk.steps("GET", "/_broker/clock/due")
    next(steps)
    peer.call(commands.Queue.Delete(queue="q2"))
    peer.open_channel(4)
    peer.call(commands.Channel.Close(200, "", 0, 0), channel=2)
    assert [event["kind"] for event in finished(steps)["events"]] == ["queue_expires", "channel_closed"]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"within": "soon"}, "'soon' is not a duration like 500ms, 30s, 30m, 1h30m or 2d"),
        ({"kind": "expiry"}, "kind must be message_expires, "),
        ({"limit": "-1"}, "limit must be a non-negative whole number"),
        ({"to": "1"}, "to"),
    ],
)
def test_a_wrong_query_is_refused(desk: Desk, query: dict[str, str], reason: str) -> None:
    status, answer = desk.get("/_broker/clock/due", **query)
    assert status == 400
    assert reason in answer
