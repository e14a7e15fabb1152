"""Publish with pika: confirms, returns, bodies of all sizes, properties, transactions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker, NackError, UnroutableError

from compat.brokers import BrokerProcess
from compat.unique_names import unique_name
from compat.waiting import wait_until

Connect = Callable[..., pika.BlockingConnection]

FRAME_MAX = 131072


def ready_count(channel: BlockingChannel, queue: str) -> int:
    return int(channel.queue_declare(queue, passive=True).method.message_count)


def test_a_confirmed_message_is_in_the_queue_when_publish_returns(channel: BlockingChannel, queue: str) -> None:
    channel.confirm_delivery()
    for expected in (1, 2, 3):
        channel.basic_publish("", queue, b"work")
        assert ready_count(channel, queue) == expected


def test_an_unroutable_mandatory_message_raises_unroutable_error_with_the_message(channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    nowhere = unique_name("nowhere")
    properties = pika.BasicProperties(message_id="m1", headers={"k": "v"})
    with pytest.raises(UnroutableError) as raised:
        channel.basic_publish("amq.direct", nowhere, b"lost letter", properties, mandatory=True)
    [returned] = raised.value.messages
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert (returned.method.exchange, returned.method.routing_key) == ("amq.direct", nowhere)
    assert (returned.properties.message_id, returned.properties.headers) == ("m1", {"k": "v"})
    assert returned.body == b"lost letter"


def test_an_unroutable_message_without_mandatory_is_confirmed(channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    channel.basic_publish("", unique_name("nowhere"), b"into the void")
    assert channel.is_open


def test_a_returned_message_reaches_the_callback_of_a_channel_without_confirms(
    connection: pika.BlockingConnection, channel: BlockingChannel
) -> None:
    returned: list[bytes] = []
    channel.add_on_return_callback(lambda _channel, _method, _properties, body: returned.append(body))
    channel.basic_publish("", unique_name("nowhere"), b"come back", mandatory=True)
    wait_until(lambda: returned == [b"come back"], pause=connection.process_data_events)


def test_a_full_queue_that_rejects_publishes_raises_nack_error(channel: BlockingChannel) -> None:
    queue = unique_name("bounded")
    channel.queue_declare(queue, arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"1")
    channel.basic_publish("", queue, b"2")
    with pytest.raises(NackError):
        channel.basic_publish("", queue, b"3")
    assert [channel.basic_get(queue, auto_ack=True)[2] for _ in range(3)] == [b"1", b"2", None]
    channel.basic_publish("", queue, b"4")


def test_a_full_queue_drops_its_oldest_message_by_default(channel: BlockingChannel) -> None:
    queue = unique_name("bounded")
    channel.queue_declare(queue, arguments={"x-max-length": 2})
    channel.confirm_delivery()
    for body in (b"1", b"2", b"3"):
        channel.basic_publish("", queue, body)
    assert [channel.basic_get(queue, auto_ack=True)[2] for _ in range(3)] == [b"2", b"3", None]


def test_publishing_to_a_missing_exchange_closes_the_channel_and_not_the_connection(
    connection: pika.BlockingConnection, channel: BlockingChannel
) -> None:
    channel.confirm_delivery()
    with pytest.raises(ChannelClosedByBroker) as raised:
        channel.basic_publish("no-such-exchange", "k", b"")
    assert raised.value.reply_code == 404
    assert raised.value.reply_text == "NOT_FOUND - no exchange 'no-such-exchange' in vhost '/'"
    assert channel.is_closed
    assert connection.channel().is_open


def test_all_properties_round_trip(channel: BlockingChannel, queue: str) -> None:
    sent = pika.BasicProperties(
        content_type="application/json",
        content_encoding="gzip",
        headers={
            "text": "grüße",
            "bytes": b"\x00\xff",
            "true": True,
            "int": -7,
            "long": 2**40,
            "decimal": Decimal("-12.345"),
            "time": datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
            "void": None,
            "empty": {},
            "array": [1, "two", [3, Decimal("0.5")], {"four": None}],
            "table": {"nested": {"deeper": [True, False, {"deepest": 2**62}]}},
        },
        delivery_mode=2,
        priority=9,
        correlation_id="correlation",
        reply_to="replies",
        expiration="60000",
        message_id="id-1",
        timestamp=1_700_000_000,
        type="order.created",
        user_id="guest",
        app_id="shop",
        cluster_id="cluster",
    )
    channel.basic_publish("", queue, b"{}", sent)
    _, received, body = channel.basic_get(queue, auto_ack=True)
    assert body == b"{}"
    assert vars(received) == vars(sent)


def test_a_message_without_properties_arrives_without_properties(channel: BlockingChannel, queue: str) -> None:
    channel.basic_publish("", queue, b"bare")
    _, received, _ = channel.basic_get(queue, auto_ack=True)
    assert vars(received) == vars(pika.BasicProperties())


def test_headers_of_a_hundred_kilobytes_round_trip(channel: BlockingChannel, queue: str) -> None:
    headers = {f"key-{i}": "v" * 500 for i in range(200)}
    channel.basic_publish("", queue, b"", pika.BasicProperties(headers=headers))
    _, received, _ = channel.basic_get(queue, auto_ack=True)
    assert received.headers == headers


@pytest.mark.parametrize(
    "size", [0, 1, FRAME_MAX - 8, FRAME_MAX - 8 + 1, FRAME_MAX, FRAME_MAX + 1, 3 * (FRAME_MAX - 8), 16 * 2**20]
)
def test_bodies_of_all_sizes_round_trip(channel: BlockingChannel, queue: str, size: int) -> None:
    body = (bytes(range(251)) * (size // 251 + 1))[:size]
    channel.confirm_delivery()
    channel.basic_publish("", queue, body)
    _, _, received = channel.basic_get(queue, auto_ack=True)
    assert received == body


def test_a_body_passes_between_connections_with_different_frame_sizes(connect: Connect, queue: str) -> None:
    body = bytes(range(256)) * 400
    large, small = connect(frame_max=FRAME_MAX).channel(), connect(frame_max=8192).channel()
    for sender, receiver in ((large, small), (small, large)):
        sender.confirm_delivery()
        sender.basic_publish("", queue, body)
        assert receiver.basic_get(queue, auto_ack=True)[2] == body


def test_concurrent_publishers_keep_their_own_order(broker: BrokerProcess, channel: BlockingChannel) -> None:
    queue = unique_name("many")
    channel.queue_declare(queue)

    def publish(publisher: int) -> None:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            own = connection.channel()
            own.confirm_delivery()
            for number in range(100):
                own.basic_publish("", queue, f"{publisher} {number}".encode())

    threads = [threading.Thread(target=publish, args=(n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    received: dict[int, list[int]] = {n: [] for n in range(5)}
    for _, _, body in channel.consume(queue, auto_ack=True, inactivity_timeout=15):
        assert body is not None, f"no message for 15 seconds after {received}"
        publisher, number = map(int, body.split())
        received[publisher].append(number)
        if sum(map(len, received.values())) == 500:
            break
    for thread in threads:
        thread.join()
    assert all(numbers == list(range(100)) for numbers in received.values())


def test_a_committed_transaction_publishes_and_acks_together(connect: Connect, channel: BlockingChannel) -> None:
    source, target = unique_name("source"), unique_name("target")
    channel.queue_declare(source)
    channel.queue_declare(target)
    channel.basic_publish("", source, b"in")
    channel.tx_select()
    method, _, _ = channel.basic_get(source)
    channel.basic_publish("", target, b"out 1")
    channel.basic_publish("", target, b"out 2")
    channel.basic_ack(method.delivery_tag)
    observer = connect().channel()
    assert ready_count(observer, target) == 0
    channel.tx_commit()
    assert ready_count(observer, target) == 2
    channel.close()
    assert ready_count(observer, source) == 0


def test_a_rolled_back_transaction_publishes_nothing_and_leaves_the_message_unacked(
    connect: Connect, channel: BlockingChannel, queue: str
) -> None:
    channel.basic_publish("", queue, b"in")
    channel.tx_select()
    method, _, _ = channel.basic_get(queue)
    channel.basic_publish("", queue, b"never")
    channel.basic_ack(method.delivery_tag)
    channel.tx_rollback()
    observer = connect().channel()
    assert ready_count(observer, queue) == 0
    channel.close()
    method, _, body = observer.basic_get(queue, auto_ack=True)
    assert (body, method.redelivered) == (b"in", True)
    assert ready_count(observer, queue) == 0


def test_confirms_on_a_transactional_channel_are_refused(channel: BlockingChannel) -> None:
    channel.tx_select()
    with pytest.raises(ChannelClosedByBroker) as raised:
        channel.confirm_delivery()
    assert raised.value.reply_code == 406


def test_a_user_id_of_another_user_is_refused(channel: BlockingChannel, queue: str) -> None:
    channel.confirm_delivery()
    with pytest.raises(ChannelClosedByBroker) as raised:
        channel.basic_publish("", queue, b"", pika.BasicProperties(user_id="somebody"))
    assert raised.value.reply_code == 406
