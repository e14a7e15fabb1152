"""Policies that change what a publish leads to, for publishers whose routes are cached."""

from __future__ import annotations

from typing import Any

from pamqp.commands import Basic, Confirm, Exchange, Queue

from amqp_broker.broker.admin.policies import Policy
from tests.peer import Lab, Peer
from tests.present import present


def set_policy(lab: Lab, **definition: Any) -> None:
    keys = {key.replace("_", "-"): value for key, value in definition.items()}
    lab.vhost.policies.set(Policy("p", "^(q|x)$", keys))


def test_a_policy_makes_a_queue_refuse_messages_and_accept_them_again(lab: Lab, peer: Peer) -> None:
    # RabbitMQ 3.10: nack, nack with {max-length 2, overflow reject-publish}; ack, and 2 kept, with {max-length 2}.
    peer.declare("q")
    peer.call(Confirm.Select())
    for _ in range(2):
        peer.publish("q", b"x")
        peer.expect(Basic.Ack)
    set_policy(lab, max_length=2, overflow="reject-publish")
    peer.publish("q", b"x")
    peer.expect(Basic.Nack)
    set_policy(lab, max_length=2)
    peer.publish("q", b"x")
    peer.expect(Basic.Ack)
    assert peer.declare("q").message_count == 2


def test_a_policy_sets_an_alternate_exchange(lab: Lab, peer: Peer) -> None:
    peer.declare("dead")
    peer.call(Exchange.Declare(exchange="x"))
    peer.call(Exchange.Declare(exchange="ae", exchange_type="fanout"))
    peer.call(Queue.Bind(queue="dead", exchange="ae"))
    peer.publish("nowhere", b"1", exchange="x", mandatory=True)
    assert peer.expect(Basic.Return).reply_text == "NO_ROUTE"
    peer.expect_content()
    set_policy(lab, alternate_exchange="ae")
    peer.publish("nowhere", b"2", exchange="x", mandatory=True)
    assert peer.declare("dead").message_count == 1
    lab.vhost.policies.clear("p")
    peer.publish("nowhere", b"3", exchange="x", mandatory=True)
    peer.expect(Basic.Return)


def test_a_policy_sets_a_time_to_live_and_a_dead_letter_exchange(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.declare("dead")
    set_policy(lab, message_ttl=1000, dead_letter_exchange="", dead_letter_routing_key="dead")
    peer.publish("q", b"x")
    lab.advance(1000)
    assert peer.declare("q").message_count == 0
    got = peer.get("dead")
    assert got is not None
    assert present(got[1].properties.headers)["x-first-death-reason"] == "expired"


def test_a_policy_expires_an_unused_queue(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    set_policy(lab, expires=1000)
    lab.advance(1000)
    peer.send(Queue.Declare(queue="q", passive=True))
    assert peer.expect_channel_close(404) == "NOT_FOUND - no queue 'q' in vhost '/'"
