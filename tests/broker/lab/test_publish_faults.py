"""Faults of a message that is published, and of its confirm."""

from __future__ import annotations

from pamqp import commands

from amqp_broker.broker.lab.fault_rules import Rule
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


def test_a_message_of_a_transaction_is_returned_once(lab: Lab) -> None:
    peer = lab.connect()
    peer.declare("q")
    peer.call(commands.Tx.Select())
    lab.broker.faults.add(Rule("return", times=1))
    peer.publish("q", b"x", mandatory=True)
    peer.expect(commands.Basic.Return)
    assert peer.expect_content().body == b"x"
    peer.call(commands.Tx.Commit())
    assert bodies(lab) == []


def test_a_message_can_be_returned_although_it_is_routed(lab: Lab, publisher: Peer) -> None:
    lab.broker.faults.add(Rule("return", code=313, text="NO_CONSUMERS", is_routed=True))
    publish(publisher, b"plain")
    assert confirms(publisher) == [("Ack", 1, False)]
    publish(publisher, b"1", mandatory=True)
    assert publisher.expect(commands.Basic.Return).reply_code == 313
    assert publisher.expect_content().body == b"1"
    assert bodies(lab) == [b"plain", b"1"]
