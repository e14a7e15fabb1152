"""Rules on deliveries of streams."""

from __future__ import annotations

import pytest
from pamqp import commands

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.lab.fault_rules import Rule
from tests.peer import Lab, Peer


def test_a_rule_that_keeps_back_deliveries_of_a_stream_is_refused(lab: Lab, peer: Peer) -> None:
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    for queue, vhost in (("s", None), ("s", "/")):
        with pytest.raises(InvalidParameter) as caught:
            lab.broker.faults.add(Rule("hold_delivery", queue=queue, vhost=vhost))
        assert str(caught.value) == "queue 's' is a stream, and 'hold_delivery' does not apply to streams"
    lab.broker.faults.add(Rule("hold_delivery", queue="q"))
    for action in ("duplicate", "drop_ack"):
        lab.broker.faults.add(Rule(action, queue="s"))
    assert len(lab.broker.faults) == 3


def consume_stream(peer: Peer) -> None:
    """Declare a stream `s` with the messages 1, 2 and 3, and consume it from its start."""
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    for body in (b"1", b"2", b"3"):
        peer.publish("s", body)
    peer.call(commands.Basic.Qos(prefetch_count=10))
    peer.consume("s", arguments={"x-stream-offset": "first"})


def test_a_message_of_a_stream_is_delivered_twice_in_its_place(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("duplicate", queue="s", after=1, times=1))
    consume_stream(peer)
    got = peer.deliveries()
    assert [(content.body, method.redelivered) for method, content in got] == [
        (b"1", False),
        (b"2", False),
        (b"2", True),
        (b"3", False),
    ]
    peer.send(commands.Basic.Ack(4, multiple=True))
    assert (lab.vhost.queues["s"].unacked_count, peer.session.channels[1].unacked.duplicates) == (0, {})
    assert (rule.matched, rule.hits) == (2, 1)


@pytest.mark.parametrize("action", ["close_channel", "cut", "cancel_consumer"])
def test_a_consumer_of_a_stream_is_ended_by_a_delivery(lab: Lab, peer: Peer, action: str) -> None:
    rule = lab.broker.faults.add(Rule(action, on="deliver", queue="s", after=1))
    consume_stream(peer)
    lab.advance(0)
    assert (rule.hits, lab.vhost.queues["s"].consumers, lab.broker.faults.ending) == (1, {}, set())


def test_no_rule_keeps_back_a_message_of_a_stream(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("hold_delivery"))
    consume_stream(peer)
    assert (peer.bodies(), rule.hits) == ([b"1", b"2", b"3"], 0)
