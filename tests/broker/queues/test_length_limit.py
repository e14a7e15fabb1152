from __future__ import annotations

import pytest
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.broker.queues.backlog_queue import BacklogQueue
from tests.broker_parts import CollectingConsumer, new_classic_queue, new_message, new_queue, pulled, push
from tests.peer import Lab


def test_a_queue_of_limited_length_drops_its_oldest_messages() -> None:
    queue = new_queue(arguments={"x-max-length": 2})
    push(queue, b"a", b"b", b"c")
    assert pulled(queue) == [(b"b", 1, False), (b"c", 2, False)]


def test_a_queue_of_limited_bytes_drops_until_the_rest_fits() -> None:
    queue = new_queue(arguments={"x-max-length-bytes": 5})
    push(queue, b"aa", b"bb", b"c")
    assert queue.ready_count == 3
    push(queue, b"ddd")
    assert [body for body, _, _ in pulled(queue)] == [b"c", b"ddd"]


def test_a_message_larger_than_the_limit_is_dropped_with_all_before_it() -> None:
    queue = new_queue(arguments={"x-max-length-bytes": 5})
    push(queue, b"aa", b"123456")
    assert queue.ready_count == 0


def test_the_limit_applies_to_ready_messages_only() -> None:
    queue = new_queue(arguments={"x-max-length": 1})
    collector = CollectingConsumer(queue, prefetch=2).start()
    push(queue, b"a", b"b", b"c")
    assert collector.bodies == [b"a", b"b"]
    assert (queue.ready_count, queue.unacked_count) == (1, 2)


def test_a_queue_with_a_maximum_length_of_0_delivers_but_keeps_nothing() -> None:
    queue = new_queue(arguments={"x-max-length": 0})
    push(queue, b"a")
    collector = CollectingConsumer(queue, prefetch=1).start()
    push(queue, b"b", b"c")
    assert collector.bodies == [b"b"]
    assert queue.ready_count == 0


def test_requeued_messages_beyond_the_limit_drop_the_oldest() -> None:
    queue = new_queue(arguments={"x-max-length": 2})
    collector = CollectingConsumer(queue, prefetch=2).start()
    push(queue, b"a", b"b", b"c", b"d")
    collector.stop()
    collector.give_back()
    assert pulled(queue) == [(b"c", 2, False), (b"d", 3, False)]
    assert queue.unacked_count == 0


def test_messages_of_a_lost_channel_count_against_limits_and_expire() -> None:
    lab = Lab()
    peer = lab.connect()
    arguments: FieldTable = {"x-max-length-bytes": 4, "x-message-ttl": 100}
    peer.call(commands.Queue.Declare(queue="q", arguments=arguments))
    for body in (b"1", b"2", b"3", b"4"):
        peer.publish("q", body)
        lab.advance(10)
    peer.send(*[commands.Basic.Get(queue="q")] * 4)
    peer.publish("q", b"5")
    peer.send(commands.Channel.Close(0, "", 0, 0))
    queue = lab.vhost.queues["q"]
    assert isinstance(queue, BacklogQueue)
    assert [message.body for message in queue.messages()] == [b"2", b"3", b"4", b"5"]
    assert (queue.unacked_count, queue.limit.ready_bytes) == (0, 4)
    lab.advance(80)
    assert [message.body for message in queue.messages()] == [b"4", b"5"]


def test_bytes_are_counted_through_deliveries_requeues_and_purges() -> None:
    queue = new_classic_queue(arguments={"x-max-length-bytes": 100})
    push(queue, b"aaa", b"bb")
    assert queue.limit.ready_bytes == 5
    collector = CollectingConsumer(queue, prefetch=1).start()
    assert queue.limit.ready_bytes == 2
    collector.stop()
    collector.give_back()
    assert queue.limit.ready_bytes == 5
    queue.pull()
    assert queue.limit.ready_bytes == 2
    queue.purge()
    assert queue.limit.ready_bytes == 0


@pytest.mark.parametrize("overflow", ["reject-publish", "reject-publish-dlx"])
def test_a_full_queue_with_reject_publish_refuses_before_the_push(overflow: str) -> None:
    queue = new_queue(arguments={"x-max-length": 1, "x-max-length-bytes": 5, "x-overflow": overflow})
    assert not queue.will_reject(new_message(b"12345"))
    assert queue.will_reject(new_message(b"123456"))
    push(queue, b"a")
    assert queue.will_reject(new_message(b""))


def test_a_queue_with_drop_head_refuses_nothing() -> None:
    queue = new_queue(arguments={"x-max-length": 0})
    assert not queue.will_reject(new_message(b"a"))


def test_a_queue_without_limits_refuses_nothing() -> None:
    assert not new_queue(arguments={"x-overflow": "reject-publish"}).will_reject(new_message(b"a"))


def test_a_queue_with_reject_publish_keeps_requeued_messages_beyond_its_limit() -> None:
    queue = new_queue(arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    collector = CollectingConsumer(queue, prefetch=1).start()
    push(queue, b"a", b"b")
    collector.stop()
    collector.give_back()
    assert [body for body, _, _ in pulled(queue)] == [b"a", b"b"]
