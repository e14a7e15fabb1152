from __future__ import annotations

from pamqp import commands

from amqp_broker.session.channel.late_deliveries import add_late
from tests.peer import Lab


def test_a_late_delivery_is_unacknowledged_on_its_channel_until_it_is_settled() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-consumer-timeout": 700})
    peer.publish("q", b"1")
    peer.consume("q")
    assert peer.bodies() == [b"1"]
    lab.advance(700)
    peer.expect(commands.Basic.Cancel)
    channel, queue = peer.session.channels[1], lab.vhost.queues["q"]
    assert (channel.messages_unacknowledged, queue.ready_count) == (1, 1)
    peer.send(commands.Basic.Reject(1, requeue=False))
    assert (channel.messages_unacknowledged, queue.ready_count, queue.unacked_count) == (1, 0, 1)
    assert peer.bodies() == [b"1"]


def test_a_late_delivery_that_is_settled_twice_closes_the_channel() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-consumer-timeout": 700})
    for body in (b"1", b"2"):
        peer.publish("q", body)
    peer.consume("q")
    assert peer.bodies() == [b"1", b"2"]
    lab.advance(700)
    peer.expect(commands.Basic.Cancel)
    peer.send(commands.Basic.Ack(1), commands.Basic.Ack(1))
    assert "unknown delivery tag 1" in peer.expect_channel_close(406)


def test_a_late_delivery_copies_no_tags_of_others() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    peer.publish("q", b"1")
    peer.consume("q")
    channel = peer.session.channels[1]
    ((_, consumer, _, message),) = channel.unacked.values()
    assert consumer is not None
    add_late(channel, 1, consumer, message)
    tags = consumer.late_tags
    add_late(channel, 2, consumer, message)
    assert consumer.late_tags is tags == {1, 2}
