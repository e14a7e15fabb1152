"""A slow link for input: requests are acted on late and in order, and do not pile up."""

from __future__ import annotations

from pamqp import commands

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.lab.slow_link import WAITING_BYTES_MAX
from tests.peer import Lab, Peer, publish_bytes


def add(lab: Lab, action: str = "latency", **said: int | str) -> Rule:
    return lab.broker.faults.add(Rule.from_mapping({"action": action, "direction": "input", **said}))


def test_requests_are_acted_on_late_and_in_order(lab: Lab, peer: Peer) -> None:
    add(lab, delay_ms=100)
    peer.send(commands.Queue.Declare(queue="a"))
    lab.advance(60)
    peer.send(commands.Queue.Declare(queue="b"))
    lab.advance(39)
    assert "a" not in lab.vhost.queues
    lab.advance(1)
    assert ("a" in lab.vhost.queues, "b" in lab.vhost.queues) == (True, False)
    # The answer is not delayed.
    assert peer.expect(commands.Queue.DeclareOk).queue == "a"
    lab.advance(60)
    assert peer.expect(commands.Queue.DeclareOk).queue == "b"


def test_a_frame_arrives_at_the_rate_of_the_link(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    add(lab, "bandwidth", bytes_per_s=10_000)
    peer.send_bytes(publish_bytes("q", bytes(5000)))
    lab.advance(490)
    assert lab.vhost.queues["q"].ready_count == 0
    lab.advance(20)
    assert lab.vhost.queues["q"].ready_count == 1


def test_octets_on_their_way_are_acted_on_when_the_rule_is_removed(lab: Lab, peer: Peer) -> None:
    rule = add(lab, delay_ms=100_000)
    peer.send(commands.Queue.Declare(queue="a"))
    lab.broker.faults.remove(rule.id)
    # Octets that come before the turn of the rest stay behind it.
    peer.send(commands.Queue.Declare(queue="b"))
    lab.advance(0)
    assert [peer.expect(commands.Queue.DeclareOk).queue for _ in range(2)] == ["a", "b"]
    assert peer.session.input_delay is None
    assert peer.session.receive == peer.session.reader.receive
    peer.declare("c")


def test_a_second_rule_replaces_the_first_until_it_is_removed(lab: Lab, peer: Peer) -> None:
    add(lab, delay_ms=100)
    second = add(lab, delay_ms=10)
    peer.send(commands.Queue.Declare(queue="a"))
    lab.advance(10)
    assert peer.expect(commands.Queue.DeclareOk).queue == "a"
    lab.broker.faults.remove(second.id)
    peer.send(commands.Queue.Declare(queue="b"))
    lab.advance(99)
    peer.expect_nothing()
    lab.advance(1)
    assert peer.expect(commands.Queue.DeclareOk).queue == "b"


def test_the_directions_are_delayed_on_their_own(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("latency", delay_ms=30))
    rule = add(lab, delay_ms=100)
    peer.send(commands.Queue.Declare(queue="a"))
    lab.advance(100)
    assert "a" in lab.vhost.queues
    assert peer.session.outbox.take() == []
    lab.broker.faults.remove(rule.id)
    lab.advance(30)
    assert peer.expect(commands.Queue.DeclareOk).queue == "a"


def test_a_client_that_has_gone_is_missed_when_its_last_octets_have_arrived(lab: Lab, peer: Peer) -> None:
    consumer = lab.connect()
    peer.declare("q")
    consumer.consume("q")
    peer.publish("q", b"1")
    add(lab, delay_ms=100, connection=consumer.session.name)
    assert consumer.bodies() == [b"1"]
    consumer.send(commands.Basic.Ack(1))
    consumer.session.connection_lost(lab.now)
    consumer.session.connection_lost(lab.now)
    lab.advance(99)
    queue = lab.vhost.queues["q"]
    assert (queue.unacked_count, len(queue.consumers)) == (1, 1)
    lab.advance(1)
    assert (queue.unacked_count, queue.ready_count, len(queue.consumers)) == (0, 0, 0)
    assert consumer.session not in lab.broker.connections
    assert consumer.session.input_delay is None


def test_a_client_that_has_gone_with_nothing_on_its_way_is_missed_late_as_well(lab: Lab, peer: Peer) -> None:
    rule = add(lab, delay_ms=100)
    peer.session.connection_lost(lab.now)
    lab.advance(99)
    assert peer.session in lab.broker.connections
    lab.advance(1)
    assert peer.session not in lab.broker.connections
    assert not rule.affected


def test_the_socket_is_not_read_while_too_much_is_on_its_way(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    rule = add(lab, "bandwidth", bytes_per_s=100_000)
    peer.send_bytes(publish_bytes("q", bytes(WAITING_BYTES_MAX // 2)))
    assert not peer.session.blocking.is_blocked
    peer.send_bytes(publish_bytes("q", bytes(WAITING_BYTES_MAX // 2)))
    assert peer.session.blocking.is_blocked
    # The client gets no connection.blocked, and no alarm is shown.
    assert (peer.session.status, peer.session.outbox.take()) == ("running", [])
    lab.advance(1200)
    assert peer.session.blocking.is_blocked
    lab.advance(200)
    assert not peer.session.blocking.is_blocked
    lab.advance(2000)
    assert lab.vhost.queues["q"].ready_count == 2
    peer.send_bytes(publish_bytes("q", bytes(WAITING_BYTES_MAX)))
    assert peer.session.blocking.is_blocked
    lab.broker.faults.remove(rule.id)
    lab.advance(0)
    assert (peer.session.blocking.is_blocked, lab.vhost.queues["q"].ready_count) == (False, 3)


def test_the_close_of_a_connection_that_the_broker_closes_is_not_delayed(lab: Lab, peer: Peer) -> None:
    add(lab, delay_ms=100_000)
    lab.broker.faults.add(Rule("close_connection"))
    peer.expect_connection_close(320)
    assert peer.is_dropped


def test_octets_on_their_way_are_lost_with_a_connection_that_is_cut(lab: Lab, peer: Peer) -> None:
    add(lab, delay_ms=100)
    peer.send(commands.Queue.Declare(queue="a"))
    lab.broker.faults.add(Rule("cut"))
    lab.advance(100)
    peer.session.connection_lost(lab.now)
    assert "a" not in lab.vhost.queues
    assert peer.session not in lab.broker.connections


def test_a_large_frame_stays_behind_the_octets_before_it(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    add(lab, delay_ms=100)
    first, second = publish_bytes("q", bytes(60_000)), publish_bytes("q", b"second")
    peer.send_bytes(first[:30_000])
    lab.advance(100)
    # The shell would put it before the next octets, which have to wait.
    assert peer.session.reader.take_partial_frame() == b""
    peer.send_bytes(first[30_000:] + second)
    lab.advance(100)
    assert lab.vhost.queues["q"].ready_count == 2
