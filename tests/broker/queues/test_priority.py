"""Queues that deliver higher priorities first."""

from __future__ import annotations

from amqp_broker.broker.queues.priority import PriorityQueue
from amqp_broker.broker.queues.queue import Queue
from tests.broker_parts import CollectingConsumer, new_message, new_queue
from tests.peer import Lab


def put(queue: Queue, *priorities: int | None) -> None:
    for priority in priorities:
        queue.push(new_message(str(priority).encode(), priority=priority))


def priority_queue(priority_max: int = 10, **arguments: object) -> Queue:
    given = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    return new_queue(arguments={"x-max-priority": priority_max, **given})


def bodies(queue: Queue) -> list[bytes]:
    return [message.body for message in queue.messages()]


def test_a_maximum_priority_of_0_makes_a_classic_queue_without_priorities() -> None:
    assert not isinstance(priority_queue(0), PriorityQueue)
    assert isinstance(priority_queue(1), PriorityQueue)


def test_ready_messages_are_listed_in_the_order_of_delivery() -> None:
    queue = priority_queue()
    put(queue, 1, 9, None, 5, 200, 0)
    assert bodies(queue) == [b"200", b"9", b"5", b"1", b"None", b"0"]
    collector = CollectingConsumer(queue).start()
    assert collector.bodies[-2:] == [b"None", b"0"]
    assert queue.ready_count == 0


def test_a_requeued_message_goes_back_to_its_priority_and_position() -> None:
    queue = priority_queue()
    put(queue, 1, 5, 5, 9)
    pulled = [queue.pull() for _ in range(3)]
    queue.unacked_count = 3
    for item in pulled:
        assert item is not None
        queue.requeue(item[1], item[0])
    assert bodies(queue) == [b"9", b"5", b"5", b"1"]
    first = queue.pull()
    assert first is not None
    assert first[2] is True


def test_a_full_queue_drops_its_head() -> None:
    queue = priority_queue(max_length=2)
    put(queue, 9, 1, 5)
    assert bodies(queue) == [b"5", b"1"]


def test_only_the_head_of_the_highest_priority_expires() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q", arguments={"x-max-priority": 10})
    peer.publish("q", b"low", priority=1, expiration="10")
    peer.publish("q", b"high", priority=9)
    lab.advance(1000)
    assert peer.declare("q", arguments={"x-max-priority": 10}).message_count == 2
    pulled = peer.get("q")
    assert pulled is not None
    assert (pulled[1].body, pulled[0].message_count) == (b"high", 0)


def test_purging_takes_all_priorities() -> None:
    queue = priority_queue()
    put(queue, 1, 9)
    assert queue.purge() == 2
    assert queue.ready_count == 0
    assert queue.pull() is None
