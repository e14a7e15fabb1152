"""Faults of a message that is published, and of its confirm."""

from __future__ import annotations

import pytest
from pamqp import commands

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.session.methods.transactions import COMMITTED_MAX
from tests.broker.lab.confirming import bodies, confirms, publish
from tests.peer import Lab, Peer


def test_a_nacked_message_is_not_stored_and_the_others_are_confirmed(lab: Lab, publisher: Peer) -> None:
    lab.broker.faults.add(Rule("confirm_nack", routing_key="q", after=1, times=1))
    publish(publisher, b"1", b"2", b"3")
    assert confirms(publisher) == [("Ack", 1, True), ("Ack", 3, False), ("Nack", 2, False)]
    assert bodies(lab) == [b"1", b"3"]


def test_a_publisher_without_confirms_is_not_nacked(lab: Lab) -> None:
    peer = lab.connect()
    peer.declare("q")
    rule = lab.broker.faults.add(Rule("confirm_nack"))
    publish(peer, b"1")
    assert (bodies(lab), rule.matched) == ([b"1"], 0)


def test_a_rule_of_one_vhost_never_touches_another(lab: Lab, publisher: Peer) -> None:
    lab.broker.add_vhost("other")
    lab.broker.faults.add(Rule("confirm_nack", vhost="other"))
    lab.broker.faults.add(Rule("close_connection", vhost="other"))
    lab.broker.faults.add(Rule("block", vhost="other"))
    publish(publisher, b"1")
    assert confirms(publisher) == [("Ack", 1, False)]
    assert all(route.is_plain for route in publisher.session.routes.values())


def test_rules_match_the_queue_that_a_message_goes_to(lab: Lab, publisher: Peer) -> None:
    publisher.call(commands.Queue.Bind(queue="q", exchange="amq.headers", arguments={"x-match": "all", "kind": "a"}))
    lab.broker.faults.add(Rule("confirm_nack", queue="q", exchange="amq.headers"))
    publisher.publish("", b"to q", exchange="amq.headers", headers={"kind": "a"})
    assert confirms(publisher) == [("Nack", 1, True)]
    publisher.publish("", b"nowhere", exchange="amq.headers", headers={"kind": "b"})
    assert confirms(publisher) == [("Ack", 2, False)]


def test_a_returned_message_is_confirmed_and_not_stored(lab: Lab, publisher: Peer) -> None:
    lab.broker.faults.add(Rule("return", times=1))
    publish(publisher, b"1", mandatory=True)
    returned = publisher.expect(commands.Basic.Return)
    assert (returned.reply_code, returned.reply_text, publisher.expect_content().body) == (312, "NO_ROUTE", b"1")
    assert confirms(publisher) == [("Ack", 1, False)]
    assert bodies(lab) == []


@pytest.fixture
def worker(lab: Lab) -> Peer:
    """A client with a queue `q` in a transaction."""
    worker = lab.connect()
    worker.declare("q")
    worker.call(commands.Tx.Select())
    return worker


def test_a_message_of_a_transaction_is_returned_at_the_commit(lab: Lab, worker: Peer) -> None:
    rule = lab.broker.faults.add(Rule("return", times=1))
    worker.publish("q", b"undone", mandatory=True)
    worker.call(commands.Tx.Rollback())
    worker.publish("q", b"x", mandatory=True)
    worker.publish("q", b"y", mandatory=True)
    worker.expect_nothing()
    worker.send(commands.Tx.Commit())
    assert worker.expect(commands.Basic.Return).reply_code == 312
    assert worker.expect_content().body == b"x"
    worker.expect(commands.Tx.CommitOk)
    assert (bodies(lab), rule.matched, rule.hits) == ([b"y"], 1, 1)


@pytest.mark.parametrize("count", [3, COMMITTED_MAX + 1])
@pytest.mark.parametrize("action", ["cut", "reset", "close_channel", "close_connection", "black_hole"])
def test_a_rule_on_confirm_takes_the_place_of_commit_ok(lab: Lab, worker: Peer, action: str, count: int) -> None:
    rule = lab.broker.faults.add(Rule(action, on="confirm", after=2))
    publish(worker, b"undone", b"undone", b"undone")
    worker.call(commands.Tx.Rollback())
    assert rule.matched == 0
    publish(worker, *[b"x"] * count)
    worker.send(commands.Tx.Commit())
    lab.drain()
    if action == "close_channel":
        worker.expect_channel_close(406)
    elif action == "close_connection":
        worker.expect_connection_close(320)
    else:
        worker.expect_nothing()
        assert worker.is_dropped is (action != "black_hole")
    assert (len(bodies(lab)), rule.matched, rule.hits) == (count, 3, 1)


def test_a_commit_that_fails_meets_no_rule_on_confirm(lab: Lab, worker: Peer) -> None:
    worker.declare("full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    rule = lab.broker.faults.add(Rule("cut", on="confirm"))
    for _ in range(2):
        worker.publish("full")
    worker.send(commands.Tx.Commit())
    worker.expect_channel_close(406)
    assert rule.matched == 0


def test_a_message_can_be_returned_although_it_is_routed(lab: Lab, publisher: Peer) -> None:
    lab.broker.faults.add(Rule("return", code=313, text="NO_CONSUMERS", is_routed=True))
    publish(publisher, b"plain")
    assert confirms(publisher) == [("Ack", 1, False)]
    publish(publisher, b"1", mandatory=True)
    assert publisher.expect(commands.Basic.Return).reply_code == 313
    assert publisher.expect_content().body == b"1"
    assert bodies(lab) == [b"plain", b"1"]


def test_a_mandatory_message_without_a_queue_is_returned_by_the_broker_alone(lab: Lab, publisher: Peer) -> None:
    rule = lab.broker.faults.add(Rule("return", code=313, is_routed=True))
    publisher.publish("nowhere", b"1", mandatory=True)
    assert publisher.expect(commands.Basic.Return).reply_code == 312
    publisher.expect_content()
    assert (confirms(publisher), rule.matched) == ([("Ack", 1, False)], 0)


def test_a_block_is_counted_once_while_it_lasts(lab: Lab, publisher: Peer) -> None:
    rules = [lab.broker.faults.add(Rule("block", on="publish", routing_key="q")) for _ in range(2)]
    publish(publisher, b"1", b"2", b"3")
    assert [rule.hits for rule in rules] == [1, 0]
