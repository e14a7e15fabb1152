"""The events that a log keeps, and its answers."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp.commands import Basic, Confirm, Queue

from amqp_broker.broker.observe.event_log import EVENT_BYTES, Event, EventLog, MessageWait
from amqp_broker.broker.observe.matching import Criteria
from tests.peer import Lab, Peer


@pytest.fixture
def log(lab: Lab) -> EventLog:
    return lab.broker.event_logs.start(lab.vhost)


def kinds(events: Any) -> list[str]:
    return [event.kind for event in events]


def story(events: list[Event]) -> list[tuple[str, str | None, int]]:
    return [(event.kind, event.queue, event.number) for event in events]


def test_all_events_of_a_message_are_logged(lab: Lab, peer: Peer, log: EventLog) -> None:
    peer.declare("q")
    peer.call(Confirm.Select())
    peer.publish("q", b"x")
    peer.expect(Basic.Ack)
    peer.get("q", no_ack=False)
    peer.send(Basic.Nack(delivery_tag=1, requeue=True))
    peer.get("q", no_ack=False)
    peer.send(Basic.Ack(delivery_tag=2))
    peer.publish("nowhere", mandatory=True)
    events = list(log.events)
    assert kinds(events) == ["publish", "confirm", "deliver", "nack", "deliver", "ack", "publish", "return", "confirm"]
    assert [event.number for event in events] == [1] * 6 + [2] * 3
    assert [event.sequence for event in events] == list(range(1, 10))
    assert (events[0].exchange, events[0].routing_keys, events[0].queues) == ("", ["q"], ["q"])
    assert (events[2].queue, events[2].more["connection"]) == ("q", peer.session.name)
    assert (events[3].more["requeue"], events[4].more["redelivered"]) == (True, 1)


def test_a_missing_queue_is_not_among_the_routed_queues(peer: Peer, log: EventLog) -> None:
    peer.publish("nowhere")
    assert log.events[0].queues == []


def test_stopping_the_log_restores_plain_routes(lab: Lab, peer: Peer, log: EventLog) -> None:
    peer.declare("q")
    peer.publish("q")
    assert lab.vhost.queues["q"].has_extras
    lab.broker.event_logs.stop(lab.vhost)
    peer.publish("q")
    assert not lab.vhost.queues["q"].has_extras
    assert all(route.is_plain for route in peer.session.routes.values())
    assert lab.broker.event_logs.of(lab.vhost) is None


def test_the_oldest_events_are_dropped_and_counted(lab: Lab, peer: Peer) -> None:
    log = lab.broker.event_logs.start(lab.vhost, events_max=3)
    for number in range(5):
        peer.publish("q", b"%d" % number)
    assert [event.number for event in log.events] == [3, 4, 5]
    assert log.skipped == 2


def test_events_are_dropped_by_the_size_of_their_messages(lab: Lab, peer: Peer) -> None:
    log = lab.broker.event_logs.start(lab.vhost, bytes_max=3 * (EVENT_BYTES + 10_000))
    for _ in range(10):
        peer.publish("q", bytes(10_000))
    assert (len(log.events), log.skipped, len(log._births)) == (2, 8, 2)
    peer.publish("q", bytes(90_000))
    assert len(log.events) == 1


def test_a_message_whose_publish_was_dropped_is_unknown(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    log = lab.broker.event_logs.start(lab.vhost, events_max=1)
    peer.publish("q", b"x")
    peer.get("q")
    [deliver] = log.events
    assert log.matching(Criteria(event="deliver")) == [deliver]
    assert deliver.kind == "deliver"


def test_events_of_older_messages_hold_their_message(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.publish("q", b"old")
    log = lab.broker.event_logs.start(lab.vhost)
    peer.get("q")
    assert [event.number for event in log.matching(Criteria("deliver", body=b"old"))] == [0]


def test_events_after_the_first_find_the_body_of_their_message(peer: Peer, log: EventLog) -> None:
    peer.declare("q")
    peer.publish("q", b"x")
    peer.publish("q", b"y")
    peer.get("q")
    peer.get("q")
    assert [event.number for event in log.matching(Criteria("deliver", body=b"y"))] == [2]
    assert log.events[-1].message is None


def test_a_cleared_log_starts_empty(peer: Peer, log: EventLog) -> None:
    peer.publish("q")
    assert log.clear() == 1
    peer.publish("q")
    assert [event.sequence for event in log.events] == [2]


def test_matches_are_limited_and_oldest_first(peer: Peer, log: EventLog) -> None:
    for _ in range(5):
        peer.publish("q")
    assert [event.number for event in log.matching(Criteria(), 2)] == [1, 2]
    assert log.count(Criteria()) == 5


# The life of a message


def test_a_timeline_includes_dead_letters(lab: Lab, peer: Peer, log: EventLog) -> None:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-message-ttl": 100}
    peer.declare("q", arguments=arguments)
    peer.declare("dead")
    peer.publish("q", b"x")
    peer.publish("dead", b"another")
    lab.advance(100)
    peer.get("dead")
    peer.get("dead")
    expected = [("publish", None, 1), ("expire", "q", 1), ("dead_letter", "q", 3), ("deliver", "dead", 3)]
    assert story(lab.broker.event_logs.timeline(1)) == expected
    assert story(lab.broker.event_logs.timeline(3)) == expected
    assert story(lab.broker.event_logs.timeline(2)) == [("publish", None, 2), ("deliver", "dead", 2)]
    assert lab.broker.event_logs.timeline(99) == []


def test_the_timeline_of_a_dead_letter_excludes_unrelated_messages(lab: Lab, peer: Peer) -> None:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-message-ttl": 100}
    peer.declare("q", arguments=arguments)
    peer.declare("dead")
    peer.publish("q")
    peer.publish("q")
    lab.broker.event_logs.start(lab.vhost)
    lab.advance(100)
    assert story(lab.broker.event_logs.timeline(1)) == [("dead_letter", "q", 1)]


# Waiting


class Done:
    def __init__(self, wait: MessageWait) -> None:
        self.times = 0
        self.wait = wait
        wait.begin(self)

    def __call__(self) -> None:
        self.times += 1


def test_a_wait_is_done_after_its_last_event(peer: Peer, log: EventLog) -> None:
    peer.publish("q", b"1")
    done = Done(MessageWait(log, Criteria(routing_key="q"), 3))
    peer.publish("other", b"-")
    peer.publish("q", b"2")
    assert (done.times, done.wait.is_met) == (0, False)
    peer.publish("q", b"3")
    peer.publish("q", b"4")
    assert (done.times, done.wait.is_met) == (1, True)
    assert [event.message.body for event in done.wait.found if event.message] == [b"1", b"2", b"3"]
    done.wait.end()
    assert log.waits == []


def test_a_wait_for_logged_events_is_done_at_once(peer: Peer, log: EventLog) -> None:
    peer.publish("q")
    done = Done(MessageWait(log, Criteria(), 1))
    assert done.times == 1
    done.wait.end()
    assert Done(MessageWait(log, Criteria(), 0)).times == 1


def test_a_wait_for_no_event_holds_until_an_event_matches(peer: Peer, log: EventLog) -> None:
    done = Done(MessageWait(log, Criteria("return"), 0, none=True))
    assert (done.times, done.wait.is_met) == (0, True)
    peer.publish("q", mandatory=True)
    assert (done.times, done.wait.is_met) == (1, False)


def test_a_wait_counts_events_that_the_log_has_dropped(lab: Lab, peer: Peer) -> None:
    log = lab.broker.event_logs.start(lab.vhost, events_max=2)
    done = Done(MessageWait(log, Criteria(), 5))
    for _ in range(5):
        peer.publish("q")
    assert done.times == 1


# All vhosts


def test_new_vhosts_are_logged_if_all_are() -> None:
    lab = Lab(event_log=True)
    other = lab.broker.add_vhost("other")
    assert [log.vhost.name for log in lab.broker.event_logs] == ["/", "other"]
    lab.broker.delete_vhost("other")
    assert [log.vhost.name for log in lab.broker.event_logs] == ["/"]
    lab.broker.event_logs.stop_all()
    assert (list(lab.broker.event_logs), lab.vhost.trace, other.trace) == ([], None, None)
    lab.broker.add_vhost("third")
    assert list(lab.broker.event_logs) == []


def test_starting_all_logs_keeps_the_limits_of_running_ones(lab: Lab, peer: Peer) -> None:
    log = lab.broker.event_logs.start(lab.vhost, events_max=3)
    peer.publish("q")
    lab.broker.event_logs.start_all()
    assert (log.events_max, len(log.events)) == (3, 1)
    lab.broker.event_logs.start(lab.vhost, events_max=5)
    assert (log.events_max, len(log.events)) == (5, 1)


def test_purges_and_deletions_of_queues_are_logged(peer: Peer, log: EventLog) -> None:
    peer.declare("q")
    peer.publish("q")
    peer.call(Queue.Purge(queue="q"))
    peer.publish("q")
    peer.call(Queue.Delete(queue="q"))
    assert [event.more.get("reason") for event in log.events if event.kind == "drop"] == ["purged", "queue_deleted"]
