from __future__ import annotations

import pytest
from pamqp.commands import Basic, Queue

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.observe.event_log import EventLog
from amqp_broker.broker.observe.message_fate import ELSEWHERE, GONE, READY, UNACKED, Fate, fate, named
from tests.peer import Lab, Peer


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def log(lab: Lab) -> EventLog:
    return lab.broker.event_logs.start(lab.vhost)


@pytest.fixture
def peer(lab: Lab, log: EventLog) -> Peer:
    peer = lab.connect()
    peer.declare("q")
    return peer


def told(log: EventLog, queue: str = "q") -> Fate:
    return fate(log.timeline(1), queue, ["q"])


def test_each_delivery_and_return_changes_the_fate(log: EventLog, peer: Peer) -> None:
    peer.publish("q", b"x")
    assert told(log) == Fate(READY, ("It is here, ready.",))
    peer.get("q", no_ack=False)
    assert told(log).state == UNACKED
    peer.send(Basic.Nack(delivery_tag=1, requeue=True))
    peer.get("q", no_ack=False)
    peer.send(Basic.Nack(delivery_tag=2, requeue=True))
    assert told(log).state == READY
    assert told(log).sentences[-1] == "It was delivered 2 times."
    peer.get("q", no_ack=True)
    assert told(log).state == GONE
    assert told(log).sentences[1].endswith("which takes messages without acks.")


def test_a_deleted_queue_is_the_reason(log: EventLog, peer: Peer) -> None:
    peer.publish("q", b"x")
    peer.call(Queue.Delete(queue="q"))
    assert told(log) == Fate(GONE, ("It was here.", "The queue was deleted."))


def test_a_message_of_another_queue_is_elsewhere(log: EventLog, peer: Peer) -> None:
    peer.publish("q", b"x")
    assert told(log, "other") == Fate(
        ELSEWHERE,
        (
            "It never came here.",
            "It was published to the default exchange with routing key 'q', which led to 'q'.",
            "This queue is bound to the default exchange with 'q'.",
        ),
    )


def test_many_names_are_counted() -> None:
    assert named([]) == "no queue"
    assert named(["a", "b"]) == "'a', 'b'"
    assert named([str(number) for number in range(7)]) == "'0', '1', '2', '3', '4' and 2 more"


def test_faults_are_named(lab: Lab, log: EventLog, peer: Peer) -> None:
    lab.broker.faults.add(Rule("return", times=1))
    peer.publish("q", b"x", mandatory=True)
    assert told(log).state == ELSEWHERE
    assert told(log).sentences[-1] == "Faults hit it: return."
