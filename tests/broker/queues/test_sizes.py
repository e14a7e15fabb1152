from __future__ import annotations

from amqp_broker.amqp.message import ENTRY_BYTES
from amqp_broker.broker.queues.sizes import QUEUE_BYTES, Sizes, memory_bytes, ready_sizes, sizes_of, sizing_unacked
from amqp_broker.broker.scheduling.portions import finished
from tests.broker_parts import new_message, new_queue, push
from tests.peer import Lab


def test_the_size_of_a_short_queue_is_that_of_all_messages() -> None:
    queue = new_queue()
    push(queue, b"", b"four")
    queue.push(new_message(b"persistent", delivery_mode=2))
    assert ready_sizes(queue) == Sizes(3, 14, 1, 10)


def test_an_empty_queue_has_no_octets() -> None:
    assert ready_sizes(new_queue()) == Sizes()


def test_the_size_of_a_long_queue_is_extrapolated_from_its_first_messages() -> None:
    queue = new_queue()
    push(queue, *[b"xx"] * 10, *[b"large"] * 10)
    assert ready_sizes(queue, exact_max=10) == Sizes(20, 40, 0, 0)
    assert ready_sizes(queue) == Sizes(20, 70, 0, 0)


def test_unacked_messages_are_measured_on_their_channels() -> None:
    lab = Lab()
    peer = lab.connect()
    for name in ("one", "other"):
        peer.declare(name)
        peer.publish(name, b"x")
        peer.publish(name, b"yy")
    peer.get("one", no_ack=False)
    peer.get("other", no_ack=False)
    peer.get("other", no_ack=False)
    queues = lab.vhost.queues
    assert finished(sizing_unacked(lab.broker.channels())) == {
        queues["one"]: Sizes(1, 1, 0, 0),
        queues["other"]: Sizes(2, 3, 0, 0),
    }


def test_the_memory_of_a_queue_is_estimated_from_its_messages() -> None:
    queue = new_queue()
    assert memory_bytes(queue, ready_sizes(queue)) == QUEUE_BYTES
    push(queue, b"1234", b"5678")
    assert memory_bytes(queue, ready_sizes(queue)) == QUEUE_BYTES + 2 * ENTRY_BYTES + 8


def test_an_empty_sample_extrapolates_to_zero_octets() -> None:
    assert sizes_of([], with_properties=False).scaled(3) == Sizes(3)
