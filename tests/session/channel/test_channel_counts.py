"""Counts and properties of a channel."""

from __future__ import annotations

from itertools import pairwise

from pamqp import commands, frame

from amqp_broker.broker.exchanges.exchange import Exchange
from amqp_broker.session.channel.channel import Channel
from tests.peer import Lab, Peer, publish_bytes


def channel_of(peer: Peer, number: int = 1) -> Channel:
    channel = peer.session.channels[number]
    channel.collect()
    return channel


def stats(peer: Peer) -> dict[str, int]:
    return {name: count for name, count in channel_of(peer).counts.message_stats().items() if count}


def exchange(lab: Lab, name: str) -> Exchange:
    found: Exchange = lab.vhost.exchanges[name]
    return found


def test_publishes_are_counted_for_the_exchange_they_went_to() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q")
    peer.send_bytes(
        publish_bytes("q", b"1")
        + publish_bytes("other", b"2")
        + publish_bytes("k", b"3", exchange="amq.topic")
        + publish_bytes("q", b"4")
    )
    counts = channel_of(peer).counts.publishes
    found = {one.name: (count.publish, count.drop_unroutable) for one, count in counts.items()}
    assert found == {"": (3, 1), "amq.topic": (1, 1)}
    lab.vhost.counts.collect()
    assert exchange(lab, "").publishes.exchange_stats() == {"publish_in": 3, "publish_out": 2}
    assert exchange(lab, "amq.topic").publishes.exchange_stats() == {"publish_in": 1}
    assert exchange(lab, "amq.topic").publishes.unroutable_stats() == {"drop_unroutable": 1}


def test_confirms_are_counted_for_the_exchanges_of_their_messages_and_nacks_are_not() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    peer.send(commands.Confirm.Select())
    peer.send_bytes(
        publish_bytes("a", b"")
        + publish_bytes("a", b"", exchange="amq.topic")
        + publish_bytes("full", b"x")
        + publish_bytes("b", b"", exchange="amq.topic")
        + publish_bytes("b", b"")
    )
    confirmed = {one.name: count.confirm for one, count in channel_of(peer).counts.publishes.items()}
    assert confirmed == {"": 2, "amq.topic": 2}
    assert exchange(lab, "").publishes.confirm == exchange(lab, "amq.topic").publishes.confirm == 2
    assert lab.broker.counters.received_confirm == 5


def test_publish_numbers_start_with_confirm_select_whatever_was_published_before() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.publish("nowhere", b"x")
    peer.call(commands.Confirm.Select())
    peer.publish("nowhere", b"x")
    assert peer.expect(commands.Basic.Ack).delivery_tag == 1
    peer.call(commands.Confirm.Select())
    peer.publish("nowhere", b"x")
    assert peer.expect(commands.Basic.Ack).delivery_tag == 2
    assert stats(peer) == {"publish": 3, "drop_unroutable": 3, "confirm": 2}
    assert lab.broker.counters.received_confirm == 2


def test_messages_off_the_plain_path_are_counted_among_others() -> None:
    peer = Lab().connect()
    for queue in ("q", "copy"):
        peer.declare(queue)
    for number in range(3):
        peer.publish("q", b"plain")
        peer.publish("q", b"copied", headers={"CC": ["copy"]})
        peer.publish("q", b"asks", reply_to="somebody", message_id=str(number))
        peer.publish("nowhere", b"returned", mandatory=True)
    assert stats(peer) == {"publish": 12, "return_unroutable": 3}
    queues = peer.lab.vhost.queues
    peer.lab.broker.collect_counts()
    assert [queues[name].statistics.published for name in ("q", "copy")] == [9, 3]


def test_acks_rejects_and_requeues_are_counted_separately() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q")
    peer.consume("q")
    for _ in range(6):
        peer.publish("q", b"x")
    peer.send(
        commands.Basic.Ack(1),
        commands.Basic.Nack(2, requeue=False),
        commands.Basic.Reject(3, requeue=True),
        commands.Basic.Ack(5, multiple=True),
    )
    # 3 came back as 7.
    assert stats(peer) == {"publish": 6, "deliver": 7, "redeliver": 1, "deliver_get": 7, "ack": 3}
    peer.disconnect()
    assert lab.vhost.queues["q"].statistics.deliveries.ack == 3


def test_acks_after_a_cancel_are_counted() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q")
    peer.consume("q")
    peer.publish("q", b"x")
    peer.deliveries()
    peer.call(commands.Basic.Cancel("c"))
    peer.send(commands.Basic.Ack(1))
    assert stats(peer)["ack"] == 1
    peer.call(commands.Channel.Close(200, "", 0, 0))
    assert lab.vhost.counts.deliveries.ack == 1


def test_repeated_subscriptions_leave_nothing_behind() -> None:
    peer = Lab().connect()
    peer.declare("q")
    for _ in range(10):
        peer.publish("q", b"x")
        peer.consume("q")
        peer.deliveries()
        peer.send(commands.Basic.Ack(0, True))
        peer.call(commands.Basic.Cancel("c"))
    assert not peer.session.channels[1].leavers
    assert stats(peer)["ack"] == 10


def test_transactions_are_counted_at_the_commit() -> None:
    peer = Lab().connect()
    peer.declare("q")
    peer.publish("q", b"x")
    peer.call(commands.Tx.Select())
    peer.get("q", no_ack=False)
    peer.publish("q", b"x")
    peer.send(commands.Basic.Ack(1))
    channel = channel_of(peer)
    assert (channel.messages_uncommitted, channel.acks_uncommitted, channel.messages_unacknowledged) == (1, 1, 1)
    assert stats(peer) == {"publish": 1, "get": 1, "deliver_get": 1}
    peer.call(commands.Tx.Commit())
    assert stats(peer) == {"publish": 2, "get": 1, "deliver_get": 1, "ack": 1}
    assert (channel.messages_uncommitted, channel.acks_uncommitted, channel.messages_unacknowledged) == (0, 0, 0)


def test_a_channel_reports_its_mode_and_counts() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.call(commands.Basic.Qos(prefetch_count=7))
    channel = channel_of(peer)
    assert [*lab.broker.channels()] == [channel]
    assert (channel.name, channel.connection) == (f"{peer.session.name} (1)", peer.session)
    assert (channel.prefetch, channel.prefetch_total, channel.status) == (7, 0, "running")
    assert not channel.is_confirming
    assert not channel.is_transactional
    peer.call(commands.Confirm.Select())
    assert channel.is_confirming
    assert channel.messages_unconfirmed == 0


def test_idle_since_is_the_time_of_the_last_observed_activity() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q")
    seen = []
    for _ in range(2):
        lab.advance(1000)
        peer.publish("q", b"x")
        lab.broker.collect_counts()
        seen.append((channel_of(peer).idle_since_ms, lab.vhost.queues["q"].idle_since_ms))
        lab.advance(1000)
        lab.broker.collect_counts()
        assert seen[-1] == (channel_of(peer).idle_since_ms, lab.vhost.queues["q"].idle_since_ms)
    assert seen == [(lab.now - 3000,) * 2, (lab.now - 1000,) * 2]


def test_received_octets_are_counted_however_reads_are_divided() -> None:
    lab = Lab()
    peer = lab.connect()
    session = peer.session
    before = session.received_bytes
    data = publish_bytes("q", b"x" * 100) * 3
    cuts = [0, 1, 50, 51, len(data)]
    rest = b""
    for start, end in pairwise(cuts):
        # The shell puts the partial frame before the next read.
        session.receive(rest + data[start:end], lab.now)
        rest = session.reader.take_partial_frame()
    session.receive(rest + frame.marshal(commands.Basic.Get(queue=""), 1), lab.now)
    assert session.received_bytes - before == len(data) + len(frame.marshal(commands.Basic.Get(queue=""), 1))


def test_an_alarm_shows_in_the_states_of_connections_and_channels() -> None:
    lab = Lab()
    publisher, other = lab.connect(), lab.connect()
    publisher.publish("nowhere", b"x")
    assert publisher.session.status == "running"
    lab.broker.set_alarm("disk", True)
    assert (publisher.session.status, other.session.status) == ("blocking", "blocking")
    publisher.publish("nowhere", b"x")
    assert (publisher.session.status, other.session.status) == ("blocked", "blocking")
    assert (channel_of(publisher).status, channel_of(other).status) == ("flow", "running")
    assert (publisher.session.last_blocked_ms, publisher.session.last_blocked_by) == (lab.broker.now, "disk")
    lab.broker.set_alarm("disk", False)
    assert publisher.session.status == other.session.status == "running"
    assert other.session.last_blocked_ms is None


def test_the_active_and_the_waiting_consumers_are_listed() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q", arguments={"x-single-active-consumer": True})
    peer.declare("shared")
    for queue, tag in (("q", "first"), ("q", "second"), ("shared", "third")):
        peer.consume(queue, tag)
    queues = lab.broker.vhosts["/"].queues.values()
    found = {one.tag: (one.is_active, one.activity_status) for queue in queues for one in queue.consumers}
    assert found == {"first": (True, "single_active"), "second": (False, "waiting"), "third": (True, "up")}
