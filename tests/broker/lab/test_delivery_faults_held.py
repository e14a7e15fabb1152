"""Deliveries that a rule holds until they are released."""

from __future__ import annotations

import pytest
from pamqp import commands

from amqp_broker.amqp.errors import DoesNotExist, InvalidParameter
from amqp_broker.broker.lab.fault_rules import Rule
from tests.peer import Lab, Peer


def test_held_deliveries_are_made_one_by_one(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("hold_delivery", queue="q"))
    peer.consume("q")
    for body in (b"one", b"two", b"three"):
        peer.publish("q", body)
    lab.advance(3_600_000)
    peer.expect_nothing()
    assert (lab.vhost.queues["q"].unacked_count, rule.as_dict()["held"]) == (3, 3)
    assert lab.broker.faults.release(rule.id, 1) == 1
    lab.advance(0)
    [(deliver, content)] = peer.deliveries()
    assert (content.body, deliver.redelivered) == (b"one", False)
    assert lab.broker.faults.release(rule.id, 5) == 2
    lab.advance(0)
    assert peer.bodies() == [b"two", b"three"]
    assert (rule.hits, rule.allowed) == (3, 3)


def test_a_release_is_for_the_next_deliveries_if_none_are_held(lab: Lab, peer: Peer) -> None:
    peer.declare("other")
    rule = lab.broker.faults.add(Rule("hold_delivery", queue="q"))
    other = lab.broker.faults.add(Rule("hold_delivery", queue="other"))
    assert lab.broker.faults.release(rule.id, 2) == 0
    for queue in ("q", "other"):
        peer.consume(queue, queue)
    for body in (b"one", b"two", b"three"):
        peer.publish("q", body)
    peer.publish("other", b"held")
    assert peer.bodies() == [b"one", b"two"]
    assert (rule.matched, rule.hits, rule.allowed, other.hits) == (1, 1, 0, 1)


def test_a_held_delivery_is_made_when_its_rule_ends(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("hold_delivery", queue="q"))
    peer.consume("q")
    peer.publish("q", b"one")
    peer.expect_nothing()
    lab.broker.faults.remove(rule.id)
    lab.advance(0)
    assert peer.bodies() == [b"one"]


def test_a_held_delivery_is_requeued_on_its_release_if_its_consumer_has_left(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("hold_delivery", queue="q"))
    peer.consume("q", "first")
    peer.publish("q", b"one")
    peer.call(commands.Basic.Cancel("first"))
    peer.consume("q", "second")
    peer.expect_nothing()
    lab.broker.faults.release(rule.id, 1)
    lab.advance(0)
    [(deliver, content)] = peer.deliveries()
    assert (content.body, deliver.consumer_tag, deliver.redelivered) == (b"one", "second", True)
    assert (rule.hits, rule.delayed, len(rule.held)) == (1, set(), 0)


def test_a_held_delivery_of_a_deleted_queue_is_gone(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("hold_delivery", queue="q"))
    peer.consume("q", "first")
    peer.publish("q", b"one")
    peer.call(commands.Basic.Cancel("first"))
    peer.call(commands.Queue.Delete(queue="q"))
    assert lab.broker.faults.release(rule.id, 1) == 1
    lab.advance(0)
    peer.expect_nothing()
    assert (lab.broker.faults.delayed, rule.delayed) == ({}, set())


def test_only_a_rule_that_holds_deliveries_releases_some(lab: Lab) -> None:
    faults = lab.broker.faults
    late, held = faults.add(Rule("delay_delivery", delay_ms=500)), faults.add(Rule("hold_delivery"))
    with pytest.raises(
        InvalidParameter, match="fault 1 is 'delay_delivery', and only 'hold_delivery' holds deliveries"
    ):
        faults.release(late.id, 1)
    with pytest.raises(InvalidParameter, match="count must be at least 1, not 0"):
        faults.release(held.id, 0)
    with pytest.raises(DoesNotExist, match="there is no fault 3"):
        faults.release(3, 1)
