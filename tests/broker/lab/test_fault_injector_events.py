"""Each fault that has happened is in the event log of its vhost."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.observe.event_log import EventLog
from tests.broker.lab.confirming import confirms, publish
from tests.peer import Lab, Peer


@pytest.fixture
def log(lab: Lab) -> EventLog:
    return lab.broker.event_logs.start(lab.vhost)


def story(log: EventLog) -> list[tuple[str, Any]]:
    """Return the kinds of the events of message 1, and the actions of faults."""
    return [(event.kind, event.more.get("action")) for event in log.timeline(1)]


PUBLISH = ("publish", None)
CONFIRM = ("confirm", None)


@pytest.mark.parametrize(
    ("rule", "events"),
    [
        (Rule("confirm_nack"), [PUBLISH, ("fault", "confirm_nack"), CONFIRM]),
        (Rule("confirm_drop"), [PUBLISH, ("fault", "confirm_drop")]),
        (Rule("return"), [PUBLISH, ("fault", "return"), ("return", None), CONFIRM]),
        (Rule("close_channel", on="confirm"), [PUBLISH, ("fault", "close_channel")]),
        (Rule("block", on="publish"), [PUBLISH, ("fault", "block"), CONFIRM]),
        # The message is never published.
        (Rule("cut", on="publish"), [("fault", "cut")]),
    ],
    ids=lambda value: value.action if isinstance(value, Rule) else "",
)
def test_a_fault_of_a_publish_follows_it(
    lab: Lab, publisher: Peer, log: EventLog, rule: Rule, events: list[tuple[str, Any]]
) -> None:
    lab.broker.faults.add(rule)
    publish(publisher, b"1", mandatory=True)
    assert story(log) == events


def test_a_late_confirm_is_logged_when_it_leaves(lab: Lab, publisher: Peer, log: EventLog) -> None:
    rule = lab.broker.faults.add(Rule("confirm_delay", delay_ms=1000))
    publish(publisher, b"1")
    assert story(log) == [PUBLISH, ("fault", "confirm_delay")]
    lab.advance(1000)
    assert confirms(publisher) == [("Ack", 1, False)]
    assert story(log) == [PUBLISH, ("fault", "confirm_delay"), CONFIRM]
    fault = log.timeline(1)[1]
    assert (fault.exchange, fault.routing_keys, fault.queue) == ("", ["q"], None)
    assert (fault.more["rule_id"], fault.more["on"]) == (rule.id, "publish")
    assert fault.more["parameters"] == {"delay_ms": 1000}
    assert fault.more["connection"] == publisher.session.name


def test_faults_of_a_delivery_and_its_ack_are_at_the_queue(lab: Lab, peer: Peer, log: EventLog) -> None:
    lab.broker.faults.add(Rule("duplicate"))
    lab.broker.faults.add(Rule("drop_ack"))
    peer.send(commands.Basic.Consume(queue="q", consumer_tag="c"))
    peer.publish("q", b"1")
    peer.send(commands.Basic.Ack(1))
    assert story(log) == [PUBLISH, ("fault", "duplicate"), ("deliver", None), ("fault", "drop_ack")]
    assert [event.queue for event in log.timeline(1) if event.kind == "fault"] == ["q", "q"]


def test_a_fault_of_a_connection_has_no_message(lab: Lab, peer: Peer, log: EventLog) -> None:
    lab.broker.add_vhost("other")
    other = lab.broker.event_logs.start(lab.broker.vhosts["other"])
    lab.broker.faults.add(Rule("block", on="now"))
    [event] = log.events
    assert (event.kind, event.number, event.message, event.routing_keys) == ("fault", 0, None, [])
    assert (event.more["action"], event.more["connection"]) == ("block", peer.session.name)
    assert not other.events
