from __future__ import annotations

from amqp_broker.broker.admin.policies import Policy
from tests.broker_parts import CollectingConsumer, new_queue, pulled, push
from tests.peer import Lab


def test_a_requeued_message_goes_back_to_its_original_position() -> None:
    queue = new_queue()
    push(queue, b"a", b"b", b"c")
    collector = CollectingConsumer(queue, prefetch=2).start()
    collector.stop()
    collector.give_back(1)
    assert pulled(queue) == [(b"b", 1, True), (b"c", 2, False)]


def test_messages_requeued_in_any_order_keep_their_original_order() -> None:
    queue = new_queue()
    push(queue, b"a", b"b", b"c", b"d")
    collector = CollectingConsumer(queue, prefetch=3).start()
    collector.stop()
    collector.give_back(2, 0, 1)
    assert pulled(queue) == [(b"a", 0, True), (b"b", 1, True), (b"c", 2, True), (b"d", 3, False)]


def test_a_requeued_message_is_delivered_as_redelivered() -> None:
    queue = new_queue()
    collector = CollectingConsumer(queue, prefetch=1).start()
    push(queue, b"a")
    collector.give_back()
    assert [(delivery.position, delivery.redelivered) for delivery in collector.taken] == [(0, False), (0, True)]


def test_an_acked_message_is_gone() -> None:
    queue = new_queue()
    collector = CollectingConsumer(queue).start()
    push(queue, b"a")
    collector.ack()
    assert (queue.ready_count, queue.unacked_count) == (0, 0)
    collector.stop()
    assert pulled(queue) == []


def test_a_message_requeued_to_a_deleted_queue_is_gone() -> None:
    queue = new_queue()
    collector = CollectingConsumer(queue).start()
    push(queue, b"a")
    queue.vhost.remove_queue(queue)
    collector.give_back()
    assert (queue.ready_count, queue.unacked_count) == (0, 0)


# Purge


def test_a_purge_drops_and_counts_ready_messages() -> None:
    queue = new_queue()
    collector = CollectingConsumer(queue, prefetch=2).start()
    push(queue, b"a", b"b", b"c", b"d")
    collector.stop()
    collector.give_back(0)
    assert queue.purge() == 3
    assert (queue.ready_count, queue.unacked_count) == (0, 1)


def test_positions_continue_after_a_purge() -> None:
    queue = new_queue()
    collector = CollectingConsumer(queue, prefetch=1).start()
    push(queue, b"a", b"b", b"c")
    queue.purge()
    push(queue, b"d")
    collector.stop()
    collector.give_back()
    assert pulled(queue) == [(b"a", 0, True), (b"d", 3, False)]


def test_a_classic_queue_whose_messages_live_for_no_time_drops_one_behind_others() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q")
    peer.publish("q", b"1")
    lab.vhost.policies.set(Policy("p", ".*", {"message-ttl": 0}))
    peer.publish("q", b"2")
    assert lab.vhost.queues["q"].ready_count == 1


def test_a_classic_queue_whose_messages_live_for_no_time_keeps_dead_letters_behind_others() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q", arguments={"x-dead-letter-exchange": "amq.fanout"})
    peer.publish("q", b"1")
    lab.vhost.policies.set(Policy("p", ".*", {"message-ttl": 0}))
    peer.publish("q", b"2")
    assert lab.vhost.queues["q"].ready_count == 2
