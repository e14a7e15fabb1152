"""Confirms that faults delay or drop."""

from __future__ import annotations

import gc
import weakref

import pytest
from pamqp import commands

from amqp_broker.broker.lab.fault_rules import Rule
from tests.broker.lab.confirming import bodies, confirms, publish
from tests.peer import Lab, Peer


def test_a_message_whose_confirm_is_dropped_is_stored_and_never_confirmed(lab: Lab, publisher: Peer) -> None:
    lab.broker.faults.add(Rule("confirm_drop", after=1, times=1))
    publish(publisher, b"1", b"2", b"3", b"4")
    assert confirms(publisher) == [("Ack", 1, True), ("Ack", 3, False), ("Ack", 4, False)]
    publish(publisher, b"5", b"6")
    # Never again: number 2 would be among those before.
    assert confirms(publisher) == [("Ack", 5, False), ("Ack", 6, False)]
    assert bodies(lab) == [b"1", b"2", b"3", b"4", b"5", b"6"]
    assert publisher.session.channels[1].messages_unconfirmed == 1


def test_a_delayed_confirm_comes_in_time_and_multiple_continues_after_it(lab: Lab, publisher: Peer) -> None:
    lab.broker.faults.add(Rule("confirm_delay", delay_ms=700, times=1))
    publish(publisher, b"1", b"2", b"3")
    assert confirms(publisher) == [("Ack", 2, False), ("Ack", 3, False)]
    lab.advance(699)
    assert confirms(publisher) == []
    lab.advance(1)
    assert confirms(publisher) == [("Ack", 1, False)]
    publish(publisher, b"4", b"5")
    assert confirms(publisher) == [("Ack", 5, True)]
    assert lab.broker.counters.publishes.confirm == 5
    assert publisher.session.channels[1].messages_unconfirmed == 0


def test_a_delayed_confirm_is_not_sent_on_a_closed_channel(lab: Lab, publisher: Peer) -> None:
    lab.broker.faults.add(Rule("confirm_delay", delay_ms=700))
    publish(publisher, b"1")
    publisher.call(commands.Channel.Close(200, "", 0, 0))
    publisher.open_channel(1)
    lab.advance(1000)
    publisher.expect_nothing()


def test_a_nack_can_be_delayed(lab: Lab, publisher: Peer) -> None:
    lab.broker.faults.add(Rule("confirm_nack", times=1))
    lab.broker.faults.add(Rule("confirm_delay", delay_ms=5, times=1))
    publish(publisher, b"1", b"2")
    assert confirms(publisher) == [("Ack", 2, False)]
    lab.advance(5)
    assert confirms(publisher) == [("Nack", 1, False)]
    assert bodies(lab) == [b"2"]


def test_a_message_that_a_full_queue_refuses_is_nacked_after_the_delay(lab: Lab, publisher: Peer) -> None:
    publisher.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    lab.broker.faults.add(Rule("confirm_delay", delay_ms=100, times=1))
    publisher.publish("full", b"")
    assert confirms(publisher) == []
    lab.advance(100)
    assert confirms(publisher) == [("Nack", 1, False)]


@pytest.mark.interpreted
@pytest.mark.parametrize("action", ["confirm_drop", "confirm_delay"])
def test_a_channel_with_withheld_confirms_is_freed_at_once(lab: Lab, publisher: Peer, action: str) -> None:
    lab.broker.faults.add(Rule(action, delay_ms=700 if action == "confirm_delay" else 0, times=1))
    publish(publisher, b"1", b"2")
    lab.advance(700)
    assert confirms(publisher)
    seen = weakref.ref(publisher.session.channels[1])
    gc.disable()
    try:
        publisher.call(commands.Channel.Close(200, "", 0, 0))
        assert seen() is None
    finally:
        gc.enable()
