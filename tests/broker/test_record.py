"""What a record keeps of a vhost's messages, and what it answers."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp.commands import Basic, Confirm, Queue

from amqp_broker.broker.matching import Criteria
from amqp_broker.broker.record import EVENT_BYTES, Event, MessageWait, Record
from tests.peer import Lab, Peer


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def peer(lab: Lab) -> Peer:
    return lab.connect()


@pytest.fixture
def record(lab: Lab) -> Record:
    return lab.broker.records.start(lab.vhost)


def kinds(events: Any) -> list[str]:
    return [event.kind for event in events]


def story(events: list[Event]) -> list[tuple[str, str | None, int]]:
    return [(event.kind, event.queue, event.number) for event in events]


def test_all_that_happens_to_a_message_is_recorded(lab: Lab, peer: Peer, record: Record) -> None:
    peer.declare("q")
    peer.call(Confirm.Select())
    peer.publish("q", b"x")
    peer.expect(Basic.Ack)
    peer.get("q", no_ack=False)
    peer.send(Basic.Nack(delivery_tag=1, requeue=True))
    peer.get("q", no_ack=False)
    peer.send(Basic.Ack(delivery_tag=2))
    peer.publish("nowhere", mandatory=True)
    events = list(record.events)
    assert kinds(events) == ["publish", "confirm", "deliver", "nack", "deliver", "ack", "publish", "return", "confirm"]
    assert [event.number for event in events] == [1] * 6 + [2] * 3
    assert [event.sequence for event in events] == list(range(1, 10))
    assert (events[0].exchange, events[0].routing_keys, events[0].queues) == ("", ["q"], ["q"])
    assert (events[2].queue, events[2].more["connection"]) == ("q", peer.session.name)
    assert (events[3].more["requeue"], events[4].more["redelivered"]) == (True, 1)


def test_a_queue_that_is_not_there_is_none_that_a_message_was_routed_to(peer: Peer, record: Record) -> None:
    peer.publish("nowhere")
    assert record.events[0].queues == []


def test_a_vhost_without_a_record_is_as_plain_as_before(lab: Lab, peer: Peer, record: Record) -> None:
    peer.declare("q")
    peer.publish("q")
    assert lab.vhost.queues["q"].has_extras
    lab.broker.records.stop(lab.vhost)
    peer.publish("q")
    assert not lab.vhost.queues["q"].has_extras
    assert all(route.is_plain for route in peer.session.routes.values())
    assert lab.broker.records.of(lab.vhost) is None


def test_the_oldest_events_make_room_and_are_counted(lab: Lab, peer: Peer) -> None:
    record = lab.broker.records.start(lab.vhost, events_max=3)
    for number in range(5):
        peer.publish("q", b"%d" % number)
    assert [event.number for event in record.events] == [3, 4, 5]
    assert record.skipped == 2


def test_large_messages_make_room_for_each_other_and_are_let_go_of(lab: Lab, peer: Peer) -> None:
    record = lab.broker.records.start(lab.vhost, bytes_max=3 * (EVENT_BYTES + 10_000))
    for _ in range(10):
        peer.publish("q", bytes(10_000))
    assert (len(record.events), record.skipped, len(record._messages)) == (2, 8, 2)
    peer.publish("q", bytes(90_000))
    assert len(record.events) == 1


def test_a_message_whose_beginning_was_skipped_is_no_longer_known(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    record = lab.broker.records.start(lab.vhost, events_max=1)
    peer.publish("q", b"x")
    peer.get("q")
    [deliver] = record.events
    assert record.matching(Criteria(event="deliver")) == [deliver]
    assert deliver.kind == "deliver"


def test_what_is_older_than_the_record_has_its_message_in_each_event(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.publish("q", b"old")
    record = lab.broker.records.start(lab.vhost)
    peer.get("q")
    assert [event.number for event in record.matching(Criteria("deliver", body=b"old"))] == [0]


def test_events_after_the_first_find_the_body_of_their_message(peer: Peer, record: Record) -> None:
    peer.declare("q")
    peer.publish("q", b"x")
    peer.publish("q", b"y")
    peer.get("q")
    peer.get("q")
    assert [event.number for event in record.matching(Criteria("deliver", body=b"y"))] == [2]
    assert record.events[-1].message is None


def test_a_cleared_record_starts_anew(peer: Peer, record: Record) -> None:
    peer.publish("q")
    assert record.clear() == 1
    peer.publish("q")
    assert [event.sequence for event in record.events] == [2]


def test_matches_come_oldest_first_and_no_more_than_wanted(peer: Peer, record: Record) -> None:
    for _ in range(5):
        peer.publish("q")
    assert [event.number for event in record.matching(Criteria(), 2)] == [1, 2]
    assert record.count(Criteria()) == 5


# The life of a message


def test_a_timeline_has_what_a_message_became_when_it_died(lab: Lab, peer: Peer, record: Record) -> None:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-message-ttl": 100}
    peer.declare("q", arguments=arguments)
    peer.declare("dead")
    peer.publish("q", b"x")
    peer.publish("dead", b"another")
    lab.advance(100)
    peer.get("dead")
    peer.get("dead")
    expected = [("publish", None, 1), ("expire", "q", 1), ("dead_letter", "q", 3), ("deliver", "dead", 3)]
    assert story(lab.broker.records.timeline(1)) == expected
    assert story(lab.broker.records.timeline(3)) == expected
    assert story(lab.broker.records.timeline(2)) == [("publish", None, 2), ("deliver", "dead", 2)]
    assert lab.broker.records.timeline(99) == []


def test_what_died_older_than_the_record_is_no_family(lab: Lab, peer: Peer) -> None:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-message-ttl": 100}
    peer.declare("q", arguments=arguments)
    peer.declare("dead")
    peer.publish("q")
    peer.publish("q")
    lab.broker.records.start(lab.vhost)
    lab.advance(100)
    assert story(lab.broker.records.timeline(1)) == [("dead_letter", "q", 1)]


# Waiting


class Done:
    def __init__(self, wait: MessageWait) -> None:
        self.times = 0
        self.wait = wait
        wait.begin(self)

    def __call__(self) -> None:
        self.times += 1


def test_a_wait_is_done_with_the_last_of_its_messages(peer: Peer, record: Record) -> None:
    peer.publish("q", b"1")
    done = Done(MessageWait(record, Criteria(routing_key="q"), 3))
    peer.publish("other", b"-")
    peer.publish("q", b"2")
    assert (done.times, done.wait.is_met) == (0, False)
    peer.publish("q", b"3")
    peer.publish("q", b"4")
    assert (done.times, done.wait.is_met) == (1, True)
    assert [event.message.body for event in done.wait.found if event.message] == [b"1", b"2", b"3"]
    done.wait.end()
    assert record.waits == []


def test_a_wait_for_what_is_there_is_done_at_once(peer: Peer, record: Record) -> None:
    peer.publish("q")
    assert Done(MessageWait(record, Criteria(), 1)).times == 1
    assert Done(MessageWait(record, Criteria(), 0)).times == 1


def test_waiting_for_none_is_met_until_one_comes(peer: Peer, record: Record) -> None:
    done = Done(MessageWait(record, Criteria("return"), 0, none=True))
    assert (done.times, done.wait.is_met) == (0, True)
    peer.publish("q", mandatory=True)
    assert (done.times, done.wait.is_met) == (1, False)


def test_a_wait_sees_what_the_record_has_no_room_for(lab: Lab, peer: Peer) -> None:
    record = lab.broker.records.start(lab.vhost, events_max=2)
    done = Done(MessageWait(record, Criteria(), 5))
    for _ in range(5):
        peer.publish("q")
    assert done.times == 1


# All vhosts


def test_a_vhost_that_comes_is_recorded_if_all_are() -> None:
    lab = Lab(record=True)
    other = lab.broker.add_vhost("other")
    assert [record.vhost.name for record in lab.broker.records] == ["/", "other"]
    lab.broker.delete_vhost("other")
    assert [record.vhost.name for record in lab.broker.records] == ["/"]
    lab.broker.records.stop_all()
    assert (list(lab.broker.records), lab.vhost.trace, other.trace) == ([], None, None)
    lab.broker.add_vhost("third")
    assert list(lab.broker.records) == []


def test_starting_all_leaves_the_limits_of_those_that_are_recorded(lab: Lab, peer: Peer) -> None:
    record = lab.broker.records.start(lab.vhost, events_max=3)
    peer.publish("q")
    lab.broker.records.start_all()
    assert (record.events_max, len(record.events)) == (3, 1)
    lab.broker.records.start(lab.vhost, events_max=5)
    assert (record.events_max, len(record.events)) == (5, 1)


def test_a_purge_and_the_end_of_a_queue_are_recorded(peer: Peer, record: Record) -> None:
    peer.declare("q")
    peer.publish("q")
    peer.call(Queue.Purge(queue="q"))
    peer.publish("q")
    peer.call(Queue.Delete(queue="q"))
    assert [event.more.get("reason") for event in record.events if event.kind == "drop"] == ["purged", "queue_deleted"]
