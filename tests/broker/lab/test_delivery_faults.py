"""Faults of deliveries and of their acks."""

from __future__ import annotations

import pytest
from pamqp import commands

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.broker.snapshot import FrozenVHost
from tests.broker_parts import CollectingConsumer, new_queue, push
from tests.peer import Lab, Peer


def test_a_duplicate_is_redelivered_and_settling_it_changes_no_queue(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("duplicate", queue="q", times=1))
    peer.send(commands.Basic.Qos(prefetch_count=1))
    peer.expect(commands.Basic.QosOk)
    peer.consume("q")
    peer.publish("q", b"one")
    peer.publish("q", b"two")
    got = peer.deliveries()
    assert [(deliver.delivery_tag, deliver.redelivered, content.body) for deliver, content in got] == [
        (1, False, b"one"),
        (2, True, b"one"),
    ]
    peer.send(commands.Basic.Ack(2), commands.Basic.Ack(1))
    assert peer.bodies() == [b"two"]
    peer.send(commands.Basic.Ack(3))
    queue = lab.vhost.queues["q"]
    assert (queue.ready_count, queue.unacked_count, rule.hits) == (0, 0, 1)


def test_a_duplicate_that_is_rejected_does_not_come_back(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("duplicate", times=1))
    peer.consume("q")
    peer.publish("q", b"one")
    assert peer.bodies() == [b"one", b"one"]
    peer.send(commands.Basic.Reject(2, True), commands.Basic.Ack(1))
    peer.expect_nothing()
    assert lab.vhost.queues["q"].ready_count == 0


def test_a_delayed_delivery_is_overtaken_and_arrives_in_time(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("delay_delivery", queue="q", delay_ms=500, times=1))
    peer.consume("q")
    peer.publish("q", b"late")
    peer.publish("q", b"next")
    assert peer.bodies() == [b"next"]
    assert lab.vhost.queues["q"].unacked_count == 2
    lab.advance(499)
    peer.expect_nothing()
    lab.advance(1)
    [(deliver, content)] = peer.deliveries()
    assert (content.body, deliver.redelivered) == (b"late", False)
    peer.send(commands.Basic.Ack(2, True))
    assert lab.vhost.queues["q"].unacked_count == 0


@pytest.mark.parametrize("of_channel", [False, True])
def test_a_delayed_delivery_counts_against_the_prefetch(lab: Lab, peer: Peer, of_channel: bool) -> None:
    peer.call(commands.Basic.Qos(prefetch_count=2, global_=of_channel))
    peer.consume("q")
    lab.broker.faults.add(Rule("delay_delivery", queue="q", delay_ms=500, times=1))
    for body in (b"late", b"next", b"last"):
        peer.publish("q", body)
    assert peer.bodies() == [b"next"]
    lab.advance(500)
    [(deliver, content)] = peer.deliveries()
    assert (content.body, deliver.redelivered) == (b"late", False)
    peer.send(commands.Basic.Ack(2))
    assert peer.bodies() == [b"last"]
    peer.send(commands.Basic.Ack(0, multiple=True))
    assert (lab.vhost.queues["q"].unacked_count, peer.session.channels[1].consumers["c"].in_flight) == (0, 0)


def test_a_delayed_delivery_counts_against_a_channel_limit_set_later(lab: Lab, peer: Peer) -> None:
    peer.consume("q")
    lab.broker.faults.add(Rule("delay_delivery", queue="q", delay_ms=500, times=1))
    peer.publish("q", b"late")
    peer.call(commands.Basic.Qos(prefetch_count=1, global_=True))
    peer.publish("q", b"next")
    lab.advance(500)
    assert peer.bodies() == [b"late"]
    peer.send(commands.Basic.Ack(1))
    assert peer.bodies() == [b"next"]
    peer.send(commands.Basic.Ack(2))
    limit = peer.session.channels[1].limit
    assert limit is not None
    assert limit.count == 0


@pytest.mark.parametrize("ends", ["comes", "cancelled", "deleted"])
def test_a_delayed_delivery_frees_its_place_however_it_ends(lab: Lab, peer: Peer, ends: str) -> None:
    channel = peer.session.channels[1]
    peer.call(commands.Basic.Qos(prefetch_count=1, global_=True))
    peer.consume("q", "first")
    lab.broker.faults.add(Rule("delay_delivery", queue="q", delay_ms=500, times=1))
    peer.publish("q", b"late")
    channel.collect()
    assert channel.counts.message_stats().get("ack", 0) == 0
    if ends == "cancelled":
        peer.call(commands.Basic.Cancel("first"))
    elif ends == "deleted":
        peer.call(commands.Queue.Delete(queue="q"))
        peer.expect(commands.Basic.Cancel)
    lab.advance(500)
    if ends == "comes":
        assert peer.bodies() == [b"late"]
        peer.send(commands.Basic.Ack(1))
    channel.collect()
    assert channel.counts.message_stats().get("ack", 0) == (ends == "comes")
    assert channel.limit is None or channel.limit.count == 0
    assert (channel.unacked.reserved_count, lab.broker.faults.delayed) == (0, {})
    peer.declare("other")
    peer.consume("other", "second")
    peer.publish("other", b"next")
    assert peer.bodies() == [b"next"]


def test_a_delayed_delivery_without_acks_takes_no_place(lab: Lab, peer: Peer) -> None:
    peer.consume("q", "first", no_ack=True)
    lab.broker.faults.add(Rule("delay_delivery", queue="q", delay_ms=500, times=1))
    peer.publish("q", b"late")
    peer.call(commands.Basic.Qos(prefetch_count=1, global_=True))
    lab.advance(500)
    assert peer.bodies() == [b"late"]
    limit = peer.session.channels[1].limit
    assert limit is not None
    assert limit.count == 0


def test_a_snapshot_contains_delayed_deliveries(lab: Lab, peer: Peer) -> None:
    peer.consume("q")
    lab.broker.faults.add(Rule("delay_delivery", queue="q", delay_ms=500, times=1))
    for body in (b"late", b"unacked"):
        peer.publish("q", body)
    [queue] = finished(FrozenVHost(lab.vhost, lab.broker.journal).queues())
    delivered, others, _ = finished(queue.kept())
    assert ([one.message.body for one in delivered], others) == ([b"late", b"unacked"], [])


def test_a_delayed_delivery_is_requeued_if_its_consumer_has_left() -> None:
    queue = new_queue()
    broker = queue.vhost.broker
    broker.faults.add(Rule("delay_delivery", delay_ms=500))
    collector = CollectingConsumer(queue).start()
    push(queue, b"one")
    collector.stop()
    broker.tick(500)
    assert (queue.ready_count, queue.unacked_count) == (1, 0)
    # Once is enough.
    assert CollectingConsumer(queue).start().bodies == [b"one"]


def test_a_message_requeued_at_the_tail_is_not_delayed_twice(lab: Lab, peer: Peer) -> None:
    peer.declare("endless", durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": -1})
    rule = lab.broker.faults.add(Rule("delay_delivery", queue="endless", delay_ms=500))
    peer.consume("endless", "first")
    peer.publish("endless", b"late")
    peer.call(commands.Basic.Cancel("first"))
    lab.advance(500)
    peer.consume("endless", "second")
    assert (peer.bodies(), rule.hits, rule.delayed) == ([b"late"], 1, set())


def test_a_delayed_delivery_is_hit_by_the_other_rules_on_arrival(lab: Lab, peer: Peer) -> None:
    late = lab.broker.faults.add(Rule("delay_delivery", queue="q", delay_ms=500))
    again = lab.broker.faults.add(Rule("duplicate", queue="q"))
    peer.consume("q")
    peer.publish("q", b"one")
    peer.expect_nothing()
    lab.advance(500)
    assert peer.bodies() == [b"one", b"one"]
    assert (late.hits, again.hits) == (1, 1)


@pytest.mark.parametrize("ends", ["comes", "cancelled"])
def test_a_delayed_delivery_counts_as_delivered_on_arrival(lab: Lab, peer: Peer, ends: str) -> None:
    channel = peer.session.channels[1]
    lab.broker.faults.add(Rule("delay_delivery", queue="q", delay_ms=500))
    peer.consume("q", "first")
    peer.publish("q", b"late")
    channel.collect()
    assert channel.counts.message_stats().get("deliver", 0) == 0
    if ends == "cancelled":
        peer.call(commands.Basic.Cancel("first"))
    lab.advance(500)
    channel.collect()
    assert channel.counts.message_stats().get("deliver", 0) == (ends == "comes")


def test_duplicates_and_their_acks_are_not_counted(lab: Lab, peer: Peer) -> None:
    channel = peer.session.channels[1]
    lab.broker.faults.add(Rule("duplicate", queue="q", times=1))
    peer.consume("q")
    peer.publish("q", b"one")
    assert peer.bodies() == [b"one", b"one"]
    peer.send(commands.Basic.Ack(2), commands.Basic.Ack(1))
    channel.collect()
    stats = {"deliver": 1, "deliver_get": 1, "ack": 1}
    assert {name: count for name, count in lab.vhost.counts.message_stats().items() if count and name in stats} == stats
    # Nor is there a second queue of that name.
    assert list(channel.counts.deliveries) == [lab.vhost.queues["q"]]


def test_a_consumer_is_cancelled_after_a_delivery(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("cancel_consumer", on="deliver", queue="q", times=1))
    peer.consume("q", "mine")
    peer.publish("q", b"one")
    assert peer.bodies() == [b"one"]
    lab.advance(0)
    assert peer.expect(commands.Basic.Cancel).consumer_tag == "mine"
    assert lab.vhost.queues["q"].consumers == {}
    # Its unacked messages stay with it.
    peer.send(commands.Basic.Ack(1))
    peer.expect_nothing()


def test_a_cancelled_consumer_of_a_quorum_queue_is_counted_until_its_deliveries_are_settled(
    lab: Lab, peer: Peer
) -> None:
    peer.declare("qq", durable=True, arguments={"x-queue-type": "quorum"})
    peer.consume("qq")
    peer.publish("qq", b"one")
    lab.broker.faults.add(Rule("cancel_consumer", queue="qq"))
    assert lab.vhost.queues["qq"].reported_consumer_count == 1
    peer.send(commands.Basic.Ack(1))
    assert lab.vhost.queues["qq"].reported_consumer_count == 0


def test_an_unsettled_duplicate_counts_when_the_limit_of_its_channel_begins(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("duplicate", queue="q", times=1))
    peer.consume("q")
    peer.publish("q", b"one")
    assert len(peer.deliveries()) == 2
    peer.send(commands.Basic.Qos(prefetch_count=2, global_=True))
    peer.expect(commands.Basic.QosOk)
    peer.publish("q", b"two")
    peer.expect_nothing()


def test_a_late_delivery_of_a_quorum_queue_leaves_the_limit_of_its_channel_alone(lab: Lab, peer: Peer) -> None:
    peer.declare("qq", durable=True, arguments={"x-queue-type": "quorum"})
    peer.consume("qq")
    peer.send(commands.Basic.Qos(prefetch_count=1, global_=True))
    peer.expect(commands.Basic.QosOk)
    lab.broker.faults.add(Rule("delay_delivery", delay_ms=10, queue="qq"))
    peer.publish("qq", b"late")
    lab.advance(10)
    assert peer.bodies() == [b"late"]
    limit = peer.session.channels[1].limit
    assert limit is not None
    assert limit.count == 0


def test_consumers_of_a_queue_are_cancelled_now(lab: Lab, peer: Peer) -> None:
    peer.declare("other")
    peer.consume("q", "a")
    peer.consume("other", "b")
    rule = lab.broker.faults.add(Rule("cancel_consumer", queue="q"))
    assert peer.expect(commands.Basic.Cancel).consumer_tag == "a"
    assert (rule.on, rule.hits, len(lab.vhost.queues["other"].consumers)) == ("now", 1, 1)


def test_a_delivery_closes_its_channel(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("close_channel", on="deliver", code=404, times=1))
    peer.consume("q")
    peer.publish("q", b"one")
    assert peer.bodies() == [b"one"]
    lab.advance(0)
    assert peer.expect_channel_close(404) == "NOT_FOUND - closed by a fault"
    assert lab.vhost.queues["q"].ready_count == 1


def test_an_ack_that_is_dropped_leaves_the_message_unacked(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("drop_ack", queue="q", times=2))
    peer.consume("q")
    for body in (b"1", b"2", b"3", b"4"):
        peer.publish("q", body)
    peer.bodies()
    peer.send(commands.Basic.Ack(2))
    peer.send(commands.Basic.Ack(3, True))
    queue = lab.vhost.queues["q"]
    assert (rule.hits, queue.unacked_count, list(peer.session.channels[1].unacked.deliveries)) == (2, 2, [1, 4])
    peer.disconnect()
    assert [message.body for message in queue.messages()] == [b"1", b"4"]
    assert queue.unacked_count == 0


@pytest.mark.parametrize("multiple", [False, True])
def test_an_ack_of_a_transaction_is_dropped_at_the_commit(lab: Lab, peer: Peer, multiple: bool) -> None:
    rule = lab.broker.faults.add(Rule("drop_ack", queue="q", times=1))
    peer.call(commands.Tx.Select())
    peer.consume("q")
    other = lab.connect()
    for body in (b"1", b"2"):
        other.publish("q", body)
    peer.bodies()
    peer.send(commands.Basic.Ack(2, True))
    peer.call(commands.Tx.Rollback())
    assert rule.matched == 0
    peer.send(*([commands.Basic.Ack(2, True)] if multiple else [commands.Basic.Ack(2), commands.Basic.Ack(1)]))
    peer.call(commands.Tx.Commit())
    queue, unacked = lab.vhost.queues["q"], peer.session.channels[1].unacked
    assert (rule.hits, queue.unacked_count, list(unacked.deliveries)) == (1, 1, [1])
    peer.send(commands.Basic.Ack(1))
    peer.call(commands.Tx.Commit())
    assert (queue.unacked_count, unacked.count) == (0, 0)


def test_a_delivery_whose_ack_was_dropped_at_the_commit_times_out() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    peer.declare("qq", durable=True, arguments={"x-queue-type": "quorum", "x-consumer-timeout": 60_000})
    peer.call(commands.Tx.Select())
    peer.consume("qq")
    lab.connect().publish("qq", b"1")
    peer.bodies()
    lab.broker.faults.add(Rule("drop_ack"))
    peer.send(commands.Basic.Ack(1))
    lab.advance(61_000)
    peer.call(commands.Tx.Commit())
    unacked = peer.session.channels[1].unacked
    assert list(unacked.deliveries) == [1]
    lab.advance(1)
    assert (list(unacked.deliveries), list(unacked.duplicates)) == ([], [1])


@pytest.mark.parametrize("action", ["close_channel", "cut", "cancel_consumer"])
def test_a_consumer_of_a_backlog_is_ended_once(lab: Lab, peer: Peer, action: str) -> None:
    for body in (b"1", b"2", b"3"):
        peer.publish("q", body)
    rule = lab.broker.faults.add(Rule(action, on="deliver"))
    peer.consume("q")
    lab.advance(0)
    assert (rule.hits, lab.vhost.queues["q"].consumers, lab.broker.faults.ending) == (1, {}, set())


def test_a_delayed_delivery_whose_consumer_has_left_is_hit_by_no_other_rule(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("delay_delivery", queue="q", delay_ms=500))
    again = lab.broker.faults.add(Rule("duplicate", queue="q"))
    peer.consume("q", "first")
    peer.publish("q", b"late")
    peer.call(commands.Basic.Cancel("first"))
    lab.advance(500)
    assert again.matched == 0


@pytest.mark.parametrize("multiple", [False, True])
def test_acks_for_a_deleted_queue_are_not_dropped(lab: Lab, multiple: bool) -> None:
    peer = lab.connect()
    peer.declare("gone")
    peer.publish("gone")
    assert peer.get("gone", no_ack=False) is not None
    rule = lab.broker.faults.add(Rule("drop_ack"))
    peer.call(commands.Queue.Delete(queue="gone"))
    peer.send(commands.Basic.Ack(1, multiple=multiple))
    assert (rule.matched, peer.session.channels[1].unacked.deliveries) == (0, {})


def test_duplicates_are_settled_with_a_multiple_ack(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("duplicate"))
    peer.consume("q")
    peer.publish("q", b"one")
    peer.publish("q", b"two")
    assert peer.bodies() == [b"one", b"one", b"two", b"two"]
    peer.send(commands.Basic.Ack(2, multiple=True))
    channel = peer.session.channels[1]
    assert (list(channel.unacked.deliveries), list(channel.unacked.duplicates)) == ([3], [4])
    assert channel.messages_unacknowledged == 2


def test_a_rollback_restores_a_settled_duplicate(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("duplicate", times=1))
    peer.call(commands.Tx.Select())
    peer.consume("q")
    lab.connect().publish("q", b"one")
    assert peer.bodies() == [b"one", b"one"]
    peer.send(commands.Basic.Ack(2))
    peer.call(commands.Tx.Rollback())
    peer.send(commands.Basic.Ack(2))
    peer.call(commands.Tx.Commit())
    peer.send(commands.Basic.Ack(2))
    assert peer.expect_channel_close(406) == "PRECONDITION_FAILED - unknown delivery tag 2"


def test_a_duplicate_that_is_never_settled_times_out_like_a_delivery(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("duplicate", times=1))
    peer.consume("q")
    peer.publish("q", b"one")
    peer.deliveries()
    peer.send(commands.Basic.Ack(1))
    lab.advance(32 * 60_000)
    assert "delivery acknowledgement on channel 1 timed out" in peer.expect_channel_close(406)


def test_only_the_oldest_of_deliveries_and_duplicates_times_out(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("duplicate", queue="short", times=1))
    peer.declare("short", arguments={"x-consumer-timeout": 60_000})
    for queue in ("q", "short"):
        peer.consume(queue, queue)
    for queue in ("q", "short"):
        peer.publish(queue, b"one")
    assert len(peer.deliveries()) == 3
    lab.advance(5 * 60_000)
    peer.expect_nothing()
    peer.send(commands.Basic.Ack(1))
    lab.advance(2 * 60_000)
    assert "Timeout value used: 60000 ms" in peer.expect_channel_close(406)
