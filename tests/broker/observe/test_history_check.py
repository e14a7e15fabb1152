from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.observe import history_check
from amqp_broker.broker.observe.event_log import Event, EventLog
from amqp_broker.broker.observe.history_check import BREACHES_MAX, STEP, HistoryCheck, history_lines
from amqp_broker.broker.observe.message_fate import fate
from amqp_broker.broker.operations.moving import move_to_queue
from amqp_broker.broker.scheduling.portions import finished
from tests.peer import Lab, Peer


@pytest.fixture
def peer(lab: Lab) -> Peer:
    peer = lab.connect()
    dead: FieldTable = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.call(commands.Queue.Declare(queue="q", arguments=dead))
    peer.declare("dead")
    return peer


@pytest.fixture
def log(lab: Lab, peer: Peer) -> EventLog:
    return lab.broker.event_logs.start(lab.vhost)


def checked(log: EventLog) -> dict[str, Any]:
    result = finished(HistoryCheck(log).run())
    assert len(result["breaches"]) <= result["breach_count"]
    return result


def breaches(log: EventLog) -> list[str]:
    found: list[str] = checked(log)["breaches"]
    return found


def lose(log: EventLog, is_lost: Callable[[Event], bool]) -> None:
    """Remove an event from the log, as if the broker had not reported it."""
    log.events.remove(next(event for event in log.events if is_lost(event)))


def test_all_that_happened_is_counted(lab: Lab, peer: Peer, log: EventLog) -> None:
    peer.call(commands.Confirm.Select())
    for body in (b"acked", b"rejected", b"returned", b"stays"):
        peer.publish("q", body)
    peer.publish("nowhere", b"x")
    peer.publish("nowhere", b"x", mandatory=True)
    lab.broker.faults.add(Rule("confirm_nack", times=1))
    peer.publish("q", b"discarded")
    consumer = lab.connect()
    for settle in (commands.Basic.Ack(1), commands.Basic.Reject(2, requeue=False), commands.Basic.Reject(3)):
        consumer.get("q", no_ack=False)
        consumer.send(settle)
    consumer.get("dead")
    lab.broker.faults.add(Rule("cut", on="publish", times=1))
    peer.publish("q", b"cut off")
    result = checked(log)
    assert {name: count for name, count in result.items() if count} == {
        "vhost": "/",
        "published": 7,
        "cut_off": 1,
        "discarded": 1,
        "unroutable": 2,
        "confirmed": 6,
        "nacked": 1,
        "returned": 1,
        "delivered": 4,
        "acked": 1,
        "taken": 1,
        "requeued": 1,
        "rejected": 1,
        "dead_lettered": 1,
        "faults": 2,
        "ready": 2,
    }
    assert history_lines(result) == [
        "7 messages published: 6 confirmed, 1 nacked, 1 returned, 2 unroutable, 1 discarded by faults; 1 more were cut "
        "off.",
        "4 deliveries, 0 of them again: 1 acked, 1 taken without ack, 1 rejected, 1 came back.",
        "Left: 0 expired, 0 dropped, 0 refused, 1 dead-lettered. Here: 2 ready, 0 unacked, 0 delayed.",
        "Each message is where its history says, and was delivered and confirmed as it should be.",
    ]


@pytest.mark.parametrize(
    ("kind", "breach"),
    [
        ("deliver", "message 1 in 'q' left the state unacked, in which it was not"),
        ("ack", "queue 'q' has 1 ready and 0 unacked messages; by the history it has 1 and 1"),
    ],
)
def test_a_missing_event_is_a_breach(peer: Peer, log: EventLog, kind: str, breach: str) -> None:
    peer.publish("q", b"1")
    peer.publish("q", b"2")
    peer.get("q", no_ack=False)
    peer.send(commands.Basic.Ack(1))
    assert breaches(log) == []
    lose(log, lambda event: event.kind == kind)
    assert breach in breaches(log)


def test_a_message_that_vanishes_from_its_queue_is_a_breach(lab: Lab, peer: Peer, log: EventLog) -> None:
    peer.publish("q", b"x")
    lab.vhost.queues["q"].purge()
    lose(log, lambda event: event.kind == "drop")
    assert breaches(log) == ["queue 'q' has 0 ready and 0 unacked messages; by the history it has 1 and 0"]


def test_a_redelivery_without_its_mark_is_a_breach(peer: Peer, log: EventLog) -> None:
    peer.publish("q", b"x")
    for tag in (1, 2):
        peer.get("q", no_ack=False)
        peer.send(commands.Basic.Reject(tag, requeue=True))
    assert breaches(log) == []
    [_, again] = [event for event in log.events if event.kind == "deliver"]
    again.more["redelivered"] = 0
    assert breaches(log) == ["message 1 was delivered from 'q' again, without the mark of a redelivery"]


def swap_first_deliveries(log: EventLog) -> None:
    first, second = (event for event in log.events if event.kind == "deliver")
    first.number, second.number = second.number, first.number


def test_a_delivery_out_of_order_is_a_breach(peer: Peer, log: EventLog) -> None:
    peer.publish("q", b"1")
    peer.publish("q", b"2")
    peer.get("q")
    peer.get("q")
    assert breaches(log) == []
    swap_first_deliveries(log)
    assert breaches(log) == ["message 1 was delivered from 'q' after a message that came later"]


@pytest.mark.parametrize("arguments", [{"x-max-priority": 5}, {"x-queue-type": "quorum"}], ids=str)
def test_a_queue_with_priorities_has_another_order(lab: Lab, peer: Peer, arguments: FieldTable) -> None:
    log = lab.broker.event_logs.start(lab.vhost)
    peer.call(commands.Queue.Declare(queue="p", durable=True, arguments=arguments))
    peer.publish("p", b"1", priority=1)
    peer.publish("p", b"2", priority=5)
    peer.get("p")
    peer.get("p")
    assert breaches(log) == []


@pytest.mark.parametrize(
    "rule", [Rule("delay_delivery", delay_ms=50, times=1), Rule("hold_delivery", times=1)], ids=str
)
def test_a_delivery_that_a_fault_keeps_back_comes_later_and_has_no_order(
    lab: Lab, peer: Peer, log: EventLog, rule: Rule
) -> None:
    lab.broker.faults.add(rule)
    peer.consume("q", no_ack=False)
    peer.publish("q", b"late")
    peer.publish("q", b"soon")
    result = checked(log)
    assert (result["delayed"], result["unacked"], result["delivered"], result["breaches"]) == (1, 1, 1, [])
    lab.advance(100)
    lab.broker.faults.clear()
    lab.advance(1)
    assert (checked(log)["unacked"], checked(log)["delivered"], breaches(log)) == (2, 2, [])
    assert [event.number for event in log.events if event.kind == "deliver"] == [2, 1]


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_message_whose_delivery_is_kept_back_goes_with_its_queue(
    lab: Lab, peer: Peer, log: EventLog, *, is_deleted: bool
) -> None:
    lab.broker.faults.add(Rule("hold_delivery", times=1))
    peer.consume("q", "c", no_ack=False)
    peer.publish("q", b"x")
    if is_deleted:
        peer.call(commands.Queue.Delete(queue="q"))
    else:
        peer.disconnect()
    lab.broker.faults.clear()
    lab.advance(1)
    result = checked(log)
    assert (result["ready"], result["delayed"], result["dropped"]) == (0, 0, 1) if is_deleted else (1, 0, 0)
    assert result["breaches"] == []


def test_a_message_comes_again_to_a_queue_whose_deletion_dropped_it_while_its_delivery_was_kept_back(
    lab: Lab, peer: Peer, log: EventLog
) -> None:
    peer.call(commands.Exchange.Declare(exchange="x", exchange_type="x-recent-history"))
    peer.call(commands.Queue.Bind(queue="q", exchange="x"))
    lab.broker.faults.add(Rule("hold_delivery", times=1))
    peer.consume("q", no_ack=False)
    peer.publish(exchange="x")
    again = lab.connect()
    again.call(commands.Queue.Delete(queue="q"))
    again.declare("q")
    again.call(commands.Queue.Bind(queue="q", exchange="x"))
    again.get("q")
    assert (checked(log)["taken"], breaches(log)) == (1, [])


def test_a_consumer_that_goes_before_a_late_delivery_leaves_the_message_ready(
    lab: Lab, peer: Peer, log: EventLog
) -> None:
    lab.broker.faults.add(Rule("delay_delivery", delay_ms=50, times=1))
    peer.consume("q", "c")
    peer.publish("q", b"x")
    peer.call(commands.Basic.Cancel("c"))
    lab.advance(100)
    assert (checked(log)["ready"], breaches(log)) == (1, [])


@pytest.mark.parametrize("is_twice", [False, True])
def test_a_wrong_confirm_is_a_breach(lab: Lab, peer: Peer, log: EventLog, *, is_twice: bool) -> None:
    peer.call(commands.Confirm.Select())
    if not is_twice:
        lab.broker.faults.add(Rule("confirm_nack", times=1))
    peer.publish("q", b"x")
    assert breaches(log) == []
    confirm = next(event for event in log.events if event.kind == "confirm")
    if is_twice:
        log.events.append(confirm)
        confirm.sequence = log.events[-1].sequence
        assert breaches(log) == ["message 1 was confirmed twice"]
    else:
        confirm.more["ack"] = True
        assert breaches(log) == ["message 1 was confirmed by an ack, although a fault had refused it"]


def test_messages_that_are_older_than_the_log_are_left_out(lab: Lab, peer: Peer) -> None:
    for body in (b"old", b"older"):
        peer.publish("q", body)
    log = lab.broker.event_logs.start(lab.vhost)
    peer.publish("q", b"new")
    peer.get("q", no_ack=False)
    result = checked(log)
    assert (result["ready"], result["delivered"], result["breaches"]) == (1, 0, [])


def test_messages_whose_first_event_was_dropped_are_left_out(lab: Lab, peer: Peer) -> None:
    log = lab.broker.event_logs.start(lab.vhost, events_max=5)
    for number in range(8):
        peer.publish("q", b"%d" % number)
    result = checked(log)
    assert (result["ready"], result["skipped"], result["breaches"]) == (5, 3, [])
    assert "The log has dropped 3 events: messages that it had first are left out." in history_lines(result)


def test_a_very_long_queue_with_older_messages_is_not_compared(
    lab: Lab, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_check, "COMPARED_MAX", 2)
    for _ in range(3):
        peer.publish("q", b"old")
    result = checked(lab.broker.event_logs.start(lab.vhost))
    assert (result["uncompared_queues"], result["breaches"]) == (1, [])
    assert history_lines(result)[-2:] == [
        "1 queues are too long to be compared.",
        "Nothing wrong was found in the rest.",
    ]


def test_many_breaches_are_counted(peer: Peer, log: EventLog) -> None:
    for _ in range(BREACHES_MAX + 5):
        peer.publish("q", b"x")
    for event in list(log.events):
        peer.get("q")
        assert event
    for event in [event for event in log.events if event.kind == "deliver"]:
        event.more["no_ack"] = True
        log.events.append(event)
    result = checked(log)
    assert result["breach_count"] > BREACHES_MAX == len(result["breaches"])
    assert history_lines(result)[-1] == f"Wrong: {result['breach_count'] - BREACHES_MAX} more."


def test_events_that_come_during_the_check_are_followed(peer: Peer, log: EventLog) -> None:
    for _ in range(2 * STEP):
        peer.publish("q", b"x")
    steps = HistoryCheck(log).run()
    next(steps)
    peer.get("q")
    result = finished(steps)
    assert (result["ready"], result["taken"], result["breaches"]) == (2 * STEP - 1, 1, [])


def test_a_queue_that_is_deleted_in_portions_delivers_nothing_that_was_kept_back(
    lab: Lab, peer: Peer, log: EventLog
) -> None:
    lab.broker.faults.add(Rule("delay_delivery", delay_ms=50))
    peer.consume("q", no_ack=False)
    for _ in range(600):
        peer.publish("q", b"x")
    lab.drain()
    peer.send(commands.Queue.Delete(queue="q"))
    lab.advance(60)
    lab.drain()
    result = checked(log)
    assert (result["delivered"], result["dropped"], result["breaches"]) == (0, 600, [])


def test_a_message_that_comes_back_by_a_move_arrives_anew(lab: Lab, peer: Peer, log: EventLog) -> None:
    peer.declare("r")
    q, r = lab.vhost.queues["q"], lab.vhost.queues["r"]
    peer.publish("q", b"1")
    peer.publish("q", b"2")
    finished(move_to_queue(q, 1, r))
    peer.get("q")
    finished(move_to_queue(r, 1, q))
    peer.get("q")
    assert breaches(log) == []


def test_the_order_is_that_of_the_queue_at_the_delivery(lab: Lab, peer: Peer, log: EventLog) -> None:
    peer.call(commands.Queue.Declare(queue="p", arguments={"x-max-priority": 5}))
    peer.publish("p", b"1", priority=1)
    peer.publish("p", b"2", priority=5)
    peer.get("p")
    peer.get("p")
    peer.call(commands.Queue.Delete(queue="p"))
    peer.declare("p")
    assert breaches(log) == []


def test_a_check_ends_although_as_much_happens_as_it_follows(peer: Peer, log: EventLog) -> None:
    for _ in range(2 * STEP):
        peer.publish("q", b"x")
    steps = HistoryCheck(log).run()
    result = None
    for _ in range(20):
        try:
            next(steps)
        except StopIteration as end:
            result = end.value
            break
        for _ in range(2 * STEP):
            peer.publish("q", b"x")
    assert result is not None
    assert (result["ready"] > 2 * STEP, result["breaches"]) == (True, [])


@pytest.mark.parametrize("is_cleared", [False, True])
def test_a_log_that_drops_events_during_the_check_is_not_compared(lab: Lab, peer: Peer, *, is_cleared: bool) -> None:
    log = lab.broker.event_logs.start(lab.vhost, events_max=3 * STEP)
    for _ in range(2 * STEP):
        peer.publish("q", b"x")
    steps = HistoryCheck(log).run()
    next(steps)
    if is_cleared:
        log.clear()
        # As many as before: only the events themselves tell that they are others.
        for _ in range(2 * STEP):
            peer.publish("q", b"z")
    else:
        for _ in range(6 * STEP):
            peer.get("q", no_ack=True) if lab.vhost.queues["q"].ready_count else peer.publish("q", b"y")
    result = finished(steps)
    assert (result["is_interrupted"], result["breaches"]) == (True, [])
    assert history_lines(result)[-2:] == [
        "The log has dropped events faster than they were followed: the queues were not compared.",
        "Nothing wrong was found in the rest.",
    ]


def test_a_message_that_a_fault_keeps_from_a_delay_is_not_unroutable(lab: Lab, peer: Peer, log: EventLog) -> None:
    arguments: FieldTable = {"x-delayed-type": "fanout"}
    peer.call(commands.Exchange.Declare(exchange="d", exchange_type="x-delayed-message", arguments=arguments))
    peer.call(commands.Queue.Bind(queue="q", exchange="d"))
    peer.call(commands.Confirm.Select())
    lab.broker.faults.add(Rule("confirm_nack"))
    peer.publish("", b"x", exchange="d", headers={"x-delay": 500})
    peer.publish("nowhere", b"x")
    result = checked(log)
    assert (result["discarded"], result["unroutable"], result["nacked"]) == (2, 0, 2)
    assert fate(log.timeline(1), "q").sentences[1] == (
        "It was published to the exchange 'd' with routing key '', and the fault confirm_nack kept it from a delay in "
        "'d'."
    )
