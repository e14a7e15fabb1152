"""A slow link for output: it is delayed, stays in order, and does not pile up."""

from __future__ import annotations

from pamqp import commands

from amqp_broker.broker.lab.fault_rules import Rule
from tests.peer import Lab, Peer


def test_replies_are_delayed_and_stay_in_order(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("latency", delay_ms=100))
    peer.send(commands.Queue.Declare(queue="a"))
    assert peer.session.outbox.take() == []
    lab.advance(60)
    peer.send(commands.Queue.Declare(queue="b"))
    assert peer.session.outbox.take() == []
    lab.advance(40)
    assert peer.expect(commands.Queue.DeclareOk).queue == "a"
    peer.expect_nothing()
    lab.advance(60)
    assert peer.expect(commands.Queue.DeclareOk).queue == "b"
    peer.send(commands.Queue.Declare(queue="c"))
    assert peer.session.outbox.take() == []
    lab.broker.faults.remove(rule.id)
    assert peer.expect(commands.Queue.DeclareOk).queue == "c"
    assert peer.session.outbox.delay is None


def test_a_second_latency_replaces_the_first_until_it_is_removed_and_loses_nothing(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("latency", delay_ms=100))
    peer.send(commands.Queue.Declare(queue="a"))
    assert peer.session.outbox.take() == []
    second = lab.broker.faults.add(Rule("latency", delay_ms=30))
    peer.send(commands.Queue.Declare(queue="b"))
    assert peer.session.outbox.take() == []
    lab.advance(100)
    assert [peer.expect(commands.Queue.DeclareOk).queue for _ in range(2)] == ["a", "b"]
    lab.broker.faults.remove(second.id)
    peer.send(commands.Queue.Declare(queue="c"))
    lab.advance(99)
    assert peer.session.outbox.take() == []
    lab.advance(1)
    assert peer.expect(commands.Queue.DeclareOk).queue == "c"


def test_jitter_follows_from_the_seed(lab: Lab) -> None:
    def arrivals(seed: int) -> list[int]:
        peer = lab.connect()
        rule = lab.broker.faults.add(Rule("latency", delay_ms=10, jitter_ms=50, seed=seed))
        came = []
        for name in ("a", "b", "c", "d"):
            peer.send(commands.Queue.Declare(queue=name))
            peer.session.outbox.take()
            start = lab.now
            while not (output := peer.session.outbox.take()):
                lab.advance(1)
            assert output
            came.append(lab.now - start)
        lab.broker.faults.remove(rule.id)
        peer.disconnect()
        return came

    assert arrivals(1) == arrivals(1) != arrivals(2)
    assert all(10 <= wait <= 60 for wait in arrivals(3))


def test_deliveries_stop_while_too_much_output_is_delayed(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    consumer = lab.connect()
    consumer.consume("q", no_ack=True)
    lab.broker.faults.add(Rule("latency", delay_ms=1000, connection=consumer.session.name))
    for _ in range(20):
        peer.publish("q", bytes(60_000))
        consumer.session.outbox.take()
    assert consumer.session.is_backpressured
    assert 0 < lab.vhost.queues["q"].ready_count < 20
    for _ in range(20):
        lab.advance(1000)
        consumer.session.outbox.take()
    assert lab.vhost.queues["q"].ready_count == 0


def test_delayed_output_does_not_resume_a_full_socket(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    consumer = lab.connect()
    consumer.consume("q", no_ack=True)
    lab.broker.faults.add(Rule("latency", delay_ms=1000, connection=consumer.session.name))
    peer.publish("q", b"late")
    consumer.session.outbox.take()
    consumer.session.pause()
    lab.advance(1000)
    assert b"late" in b"".join(consumer.session.outbox.take())
    assert consumer.session.is_backpressured


def test_deliveries_arrive_at_the_rate_of_the_link(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    consumer = lab.connect()
    consumer.consume("q", no_ack=True)
    lab.broker.faults.add(Rule("bandwidth", bytes_per_s=10_000, connection=consumer.session.name))
    peer.publish("q", bytes(5000))
    arrived = []
    for _ in range(28):
        arrived.append(sum(map(len, consumer.session.outbox.take())))
        lab.advance(20)
    # A slice has at least 256 octets, which take 25.6 ms.
    assert arrived[:5] == [0, 0, 256, 256, 256]
    assert sum(arrived[:25]) < 5000 < sum(arrived) < 5100
