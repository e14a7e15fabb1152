"""Consume with pika: prefetch, settling, redelivery, cancellation, priorities, threads."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker

from compat.unique_names import unique_name
from compat.waiting import wait_until

Connect = Callable[..., pika.BlockingConnection]


class Inbox:
    """Deliveries of one consumer, in order; each is settled by the test."""

    def __init__(self, channel: BlockingChannel, queue: str, **options: Any) -> None:
        self.channel = channel
        self.methods: list[pika.spec.Basic.Deliver] = []
        self.bodies: list[bytes] = []
        self.tag = channel.basic_consume(queue, self.on_message, **options)

    def on_message(self, _channel: BlockingChannel, method: Any, _properties: Any, body: bytes) -> None:
        self.methods.append(method)
        self.bodies.append(body)

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.bodies) >= count, pause=self.channel.connection.process_data_events)
        assert len(self.bodies) == count


def publish(channel: BlockingChannel, queue: str, *bodies: str) -> None:
    for body in bodies:
        channel.basic_publish("", queue, body.encode())


def wait_for_ready(channel: BlockingChannel, queue: str, count: int) -> None:
    """Wait for the count: RabbitMQ may count before it has processed this channel's asynchronous methods."""
    wait_until(lambda: channel.queue_declare(queue, passive=True).method.message_count == count)


def test_a_consumer_gets_no_more_unacked_messages_than_its_prefetch(channel: BlockingChannel, queue: str) -> None:
    publish(channel, queue, *"abcdefghij")
    channel.basic_qos(prefetch_count=2)
    inbox = Inbox(channel, queue)
    inbox.wait_for(2)
    wait_for_ready(channel, queue, 8)
    channel.basic_ack(inbox.methods[0].delivery_tag)
    inbox.wait_for(3)
    wait_for_ready(channel, queue, 7)
    channel.basic_ack(inbox.methods[2].delivery_tag, multiple=True)
    inbox.wait_for(5)
    wait_for_ready(channel, queue, 5)
    assert inbox.bodies == [b"a", b"b", b"c", b"d", b"e"]


def test_global_prefetch_is_shared_by_the_consumers_of_a_channel(channel: BlockingChannel) -> None:
    first, second = unique_name("first"), unique_name("second")
    for name in (first, second):
        channel.queue_declare(name)
        publish(channel, name, "1", "2", "3")
    channel.basic_qos(prefetch_count=3, global_qos=True)
    eager = Inbox(channel, first)
    eager.wait_for(3)
    late = Inbox(channel, second)
    wait_for_ready(channel, second, 3)
    channel.basic_ack(eager.methods[0].delivery_tag)
    late.wait_for(1)
    wait_for_ready(channel, second, 2)


def test_acked_messages_are_not_redelivered(connect: Connect, channel: BlockingChannel, queue: str) -> None:
    publish(channel, queue, "a", "b", "c")
    inbox = Inbox(channel, queue)
    inbox.wait_for(3)
    channel.basic_ack(inbox.methods[1].delivery_tag, multiple=True)
    channel.close()
    observer = connect().channel()
    method, _, body = observer.basic_get(queue, auto_ack=True)
    assert (body, method.redelivered, method.message_count) == (b"c", True, 0)


def test_nacked_messages_are_redelivered_in_their_order(channel: BlockingChannel, queue: str) -> None:
    publish(channel, queue, "a", "b", "c")
    channel.basic_qos(prefetch_count=3)
    inbox = Inbox(channel, queue)
    inbox.wait_for(3)
    assert not any(method.redelivered for method in inbox.methods)
    channel.basic_nack(inbox.methods[2].delivery_tag, multiple=True, requeue=True)
    inbox.wait_for(6)
    assert inbox.bodies[3:] == [b"a", b"b", b"c"]
    assert all(method.redelivered for method in inbox.methods[3:])


def test_a_rejected_message_returns_to_its_original_position(channel: BlockingChannel, queue: str) -> None:
    publish(channel, queue, "a", "b", "c")
    first, _, _ = channel.basic_get(queue)
    second, _, _ = channel.basic_get(queue)
    channel.basic_reject(second.delivery_tag, requeue=True)
    channel.basic_reject(first.delivery_tag, requeue=True)
    got = [channel.basic_get(queue, auto_ack=True) for _ in range(3)]
    assert [(body, method.redelivered) for method, _, body in got] == [(b"a", True), (b"b", True), (b"c", False)]


def test_a_message_rejected_without_requeue_is_removed(channel: BlockingChannel, queue: str) -> None:
    publish(channel, queue, "a")
    method, _, _ = channel.basic_get(queue)
    channel.basic_reject(method.delivery_tag, requeue=False)
    assert channel.basic_get(queue) == (None, None, None)


def test_get_returns_the_number_of_remaining_messages(channel: BlockingChannel, queue: str) -> None:
    publish(channel, queue, "a", "b", "c")
    for left in (2, 1, 0):
        method, _, _ = channel.basic_get(queue, auto_ack=True)
        assert (method.message_count, method.exchange, method.routing_key) == (left, "", queue)
    assert channel.basic_get(queue) == (None, None, None)


def test_unacked_messages_of_a_closed_connection_are_redelivered(connect: Connect, queue: str) -> None:
    leaving, staying = connect(), connect().channel()
    publish(staying, queue, "a", "b")
    Inbox(leaving.channel(), queue).wait_for(2)
    inbox = Inbox(staying, queue)
    leaving.close()
    inbox.wait_for(2)
    assert inbox.bodies == [b"a", b"b"]
    assert all(method.redelivered for method in inbox.methods)


def test_recover_redelivers_unacked_messages(channel: BlockingChannel, queue: str) -> None:
    publish(channel, queue, "a")
    inbox = Inbox(channel, queue)
    inbox.wait_for(1)
    channel.basic_recover(requeue=True)
    inbox.wait_for(2)
    assert inbox.methods[1].redelivered


def test_recover_without_requeue_is_not_implemented(connect: Connect) -> None:
    with pytest.raises(ConnectionClosedByBroker) as raised:
        connect().channel().basic_recover(requeue=False)
    assert raised.value.reply_code == 540


def test_start_consuming_runs_until_stop_consuming(channel: BlockingChannel, queue: str) -> None:
    publish(channel, queue, "a", "b", "c")
    bodies: list[bytes] = []

    def on_message(channel: BlockingChannel, method: Any, _properties: Any, body: bytes) -> None:
        bodies.append(body)
        channel.basic_ack(method.delivery_tag)
        if len(bodies) == 3:
            channel.stop_consuming()

    channel.basic_qos(prefetch_count=1)
    channel.basic_consume(queue, on_message)
    channel.start_consuming()
    assert bodies == [b"a", b"b", b"c"]


def test_consume_generator_yields_nothing_on_inactivity_and_requeues_on_cancel(
    channel: BlockingChannel, queue: str
) -> None:
    publish(channel, queue, "a", "b", "c")
    channel.basic_qos(prefetch_count=3)
    generator = channel.consume(queue, inactivity_timeout=1.5)
    method, _, body = next(generator)
    assert body == b"a"
    channel.basic_ack(method.delivery_tag)
    assert [next(generator)[2], next(generator)[2]] == [b"b", b"c"]
    assert next(generator) == (None, None, None)
    channel.cancel()
    channel.basic_nack(requeue=True, multiple=True)
    wait_for_ready(channel, queue, 2)


def test_deleting_the_queue_cancels_its_consumers(connect: Connect, channel: BlockingChannel, queue: str) -> None:
    cancelled: list[str] = []
    channel.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
    inbox = Inbox(channel, queue)
    connect().channel().queue_delete(queue)
    wait_until(lambda: cancelled == [inbox.tag], pause=channel.connection.process_data_events)
    assert channel.is_open


def test_deleting_the_queue_ends_the_consume_generator(connect: Connect, channel: BlockingChannel, queue: str) -> None:
    publish(channel, queue, "a")
    bodies = []
    deleter = connect().channel()
    for _, _, body in channel.consume(queue, auto_ack=True, inactivity_timeout=15):
        assert body is not None, "the consumer was not cancelled"
        bodies.append(body)
        deleter.queue_delete(queue)
    assert bodies == [b"a"]


def test_two_consumers_take_turns(connect: Connect, queue: str) -> None:
    first = Inbox(connect().channel(), queue, auto_ack=True)
    second = Inbox(connect().channel(), queue, auto_ack=True)
    publish(first.channel, queue, *"abcdefgh")
    first.wait_for(4)
    second.wait_for(4)
    assert sorted(first.bodies + second.bodies) == [bytes([letter]) for letter in b"abcdefgh"]


def test_a_consumer_of_higher_priority_is_served_until_it_is_full(connect: Connect, queue: str) -> None:
    low_channel, high_channel = connect().channel(), connect().channel()
    low = Inbox(low_channel, queue)
    high_channel.basic_qos(prefetch_count=3)
    high = Inbox(high_channel, queue, arguments={"x-priority": 10})
    publish(low_channel, queue, *"abcde")
    high.wait_for(3)
    low.wait_for(2)
    assert (high.bodies, low.bodies) == ([b"a", b"b", b"c"], [b"d", b"e"])


def test_cancelling_the_single_active_consumer_activates_the_next(connect: Connect) -> None:
    first_channel, second_channel = connect().channel(), connect().channel()
    queue = unique_name("single")
    first_channel.queue_declare(queue, arguments={"x-single-active-consumer": True})
    first = Inbox(first_channel, queue, auto_ack=True)
    second = Inbox(second_channel, queue, auto_ack=True)
    publish(second_channel, queue, "a", "b")
    first.wait_for(2)
    first_channel.basic_cancel(first.tag)
    publish(second_channel, queue, "c")
    second.wait_for(1)
    assert second.bodies == [b"c"]


def test_an_exclusive_consumer_excludes_others(connect: Connect, channel: BlockingChannel, queue: str) -> None:
    Inbox(channel, queue, exclusive=True)
    with pytest.raises(ChannelClosedByBroker) as raised:
        Inbox(connect().channel(), queue)
    assert raised.value.reply_code == 403
    assert raised.value.reply_text == f"ACCESS_REFUSED - queue '{queue}' in vhost '/' in exclusive use"


def test_acking_twice_closes_the_channel(channel: BlockingChannel, queue: str) -> None:
    publish(channel, queue, "a")
    method, _, _ = channel.basic_get(queue)
    channel.basic_ack(method.delivery_tag)
    channel.basic_ack(method.delivery_tag)
    with pytest.raises(ChannelClosedByBroker) as raised:
        channel.queue_declare(queue, passive=True)
    assert raised.value.reply_code == 406
    assert raised.value.reply_text == "PRECONDITION_FAILED - unknown delivery tag 1"


def test_consuming_from_a_missing_queue_closes_the_channel(channel: BlockingChannel) -> None:
    missing = unique_name("missing")
    with pytest.raises(ChannelClosedByBroker) as raised:
        Inbox(channel, missing)
    assert raised.value.reply_code == 404
    assert raised.value.reply_text == f"NOT_FOUND - no queue '{missing}' in vhost '/'"


def test_an_auto_delete_queue_is_deleted_with_its_last_consumer(connect: Connect, channel: BlockingChannel) -> None:
    queue = unique_name("auto-delete")
    channel.queue_declare(queue, auto_delete=True)
    first, second = Inbox(channel, queue), Inbox(channel, queue)
    channel.basic_cancel(first.tag)
    assert channel.queue_declare(queue, passive=True).method.consumer_count == 1
    channel.basic_cancel(second.tag)
    with pytest.raises(ChannelClosedByBroker) as raised:
        channel.queue_declare(queue, passive=True)
    assert raised.value.reply_code == 404


def test_worker_threads_ack_through_threadsafe_callbacks(
    connection: pika.BlockingConnection, channel: BlockingChannel, queue: str
) -> None:
    publish(channel, queue, *(str(n) for n in range(20)))
    threads: list[threading.Thread] = []
    acked: set[int] = set()

    def ack(delivery_tag: int) -> None:
        channel.basic_ack(delivery_tag)
        acked.add(delivery_tag)

    def work(delivery_tag: int) -> None:
        connection.add_callback_threadsafe(functools.partial(ack, delivery_tag))

    def on_message(_channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        threads.append(threading.Thread(target=work, args=(method.delivery_tag,)))
        threads[-1].start()

    channel.basic_qos(prefetch_count=5)
    channel.basic_consume(queue, on_message)
    wait_until(lambda: len(acked) == 20, pause=connection.process_data_events)
    for thread in threads:
        thread.join()
    channel.close()
    assert connection.channel().basic_get(queue) == (None, None, None)
