"""Producers, consumers, queues and exchanges of kombu."""

from __future__ import annotations

import contextlib
import datetime
import socket
from collections.abc import Callable, Iterator
from typing import Any

import amqp
import pytest
from kombu import Connection, Consumer, Exchange, Message, Producer, Queue, binding
from kombu.common import Broadcast, eventloop
from kombu.pools import connections, producers
from kombu.transport.native_delayed_delivery import (
    bind_queue_to_native_delayed_delivery_exchange,
    calculate_routing_key,
    declare_native_delayed_delivery_exchanges_and_queues,
)
from kombu.transport.pyamqp import Channel

from compat.brokers import BrokerProcess
from compat.unique_names import unique_name
from compat.waiting import wait_until


def drain(connection: Connection) -> Callable[[float], None]:
    """Lets the connection handle what arrives, for `wait_until`."""

    def pause(seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            connection.drain_events(timeout=seconds)

    return pause


def declared(channel: Channel, **options: Any) -> Queue:
    """A queue bound to an exchange of its own."""
    name = unique_name("tasks")
    queue = Queue(name, Exchange(name, "direct"), routing_key=name, **options)(channel)
    queue.declare()
    return queue


def publish(queue: Queue, *bodies: Any, **options: Any) -> None:
    producer = Producer(queue.channel, queue.exchange, routing_key=queue.routing_key)
    for body in bodies:
        producer.publish(body, **options)


def test_published_json_reaches_the_callback_of_a_consumer(connection: Connection) -> None:
    name = unique_name("media")
    video_queue = Queue(name, exchange=Exchange(name, "direct", durable=True), routing_key="video")
    received: list[Any] = []

    def process(body: Any, message: Message) -> None:
        received.append(body)
        message.ack()

    producer = connection.Producer(serializer="json")
    video = {"name": "lolcat1.avi", "size": 1301013, "tags": ["cat", None, 1.5]}
    producer.publish(video, exchange=video_queue.exchange, routing_key="video", declare=[video_queue])
    with connection.Consumer(video_queue, callbacks=[process]):
        connection.drain_events(timeout=15)
    assert received == [video]
    assert video_queue(connection.default_channel).get() is None


@pytest.mark.parametrize("serializer", ["json", "pickle", "raw"])
@pytest.mark.parametrize("compression", [None, "zlib", "bzip2"])
def test_serializers_and_compressions_round_trip(channel: Channel, serializer: str, compression: str | None) -> None:
    queue = declared(channel)
    body: Any = "x" * 10_000 if serializer == "raw" else {"when": datetime.date(2024, 2, 29), "many": [1] * 5_000}
    if serializer == "json":
        body["when"] = "2024-02-29"
    publish(queue, body, serializer=serializer, compression=compression)
    message = queue.get(accept=["json", "pickle", "application/data"])
    decoded = message.decode()
    assert (decoded.decode() if isinstance(decoded, bytes) else decoded) == body
    message.ack()


def test_headers_and_properties_round_trip(channel: Channel) -> None:
    queue = declared(channel)
    publish(
        queue,
        "body",
        headers={"retries": 0, "eta": None, "nested": {"list": [1, "two", {"three": 3}]}, "flag": True},
        priority=4,
        expiration=60,
        correlation_id="c-1",
        reply_to="replies",
        message_id="m-1",
        timestamp=1_709_209_800,
        app_id="shop",
        type="order",
        delivery_mode=1,
    )
    message = queue.get(no_ack=True)
    assert message.headers == {
        "retries": 0,
        "eta": None,
        "nested": {"list": [1, "two", {"three": 3}]},
        "flag": True,
    }
    expected = {"priority": 4, "expiration": "60000", "correlation_id": "c-1", "reply_to": "replies"}
    expected |= {"message_id": "m-1", "app_id": "shop", "type": "order", "delivery_mode": 1, "timestamp": 1_709_209_800}
    assert {key: message.properties[key] for key in expected} == expected
    assert message.delivery_info["routing_key"] == queue.routing_key
    assert message.delivery_info["exchange"] == queue.exchange.name


def test_drain_events_times_out_when_nothing_comes(connection: Connection) -> None:
    with connection.Consumer(declared(connection.default_channel)), pytest.raises(socket.timeout):
        connection.drain_events(timeout=0.1)


def test_prefetch_limits_a_consumers_messages_and_can_grow(connection: Connection) -> None:
    queue = declared(connection.default_channel)
    publish(queue, *range(10))
    held: list[Message] = []
    consumer = connection.Consumer(queue, on_message=held.append, prefetch_count=3)
    other = connection.channel()

    def ready() -> int:
        return int(queue(other).queue_declare(passive=True).message_count)

    with consumer:
        wait_until(lambda: len(held) == 3 and ready() == 7, pause=drain(connection))
        held[0].ack()
        wait_until(lambda: len(held) == 4 and ready() == 6, pause=drain(connection))
    assert [message.decode() for message in held] == [0, 1, 2, 3]


def test_requeued_message_is_redelivered_and_rejected_one_is_dead_lettered(connection: Connection) -> None:
    channel = connection.default_channel
    morgue = declared(channel)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": morgue.name}
    queue = declared(channel, queue_arguments=arguments)
    publish(queue, "poison")
    redelivered: list[bool] = []

    def process(_body: Any, message: Message) -> None:
        redelivered.append(message.delivery_info["redelivered"])
        if len(redelivered) == 1:
            message.requeue()
        else:
            message.reject()

    dead: list[Message] = []
    with Consumer(channel, queue, callbacks=[process]), Consumer(channel, morgue, on_message=dead.append, no_ack=True):
        wait_until(lambda: dead, pause=drain(connection))
    assert redelivered == [False, True]
    [death] = dead[0].headers["x-death"]
    assert (death["queue"], death["reason"], death["count"]) == (queue.name, "rejected", 1)


def test_eventloop_drains_until_its_limit(connection: Connection) -> None:
    queue = declared(connection.default_channel)
    publish(queue, *range(5))
    received: list[int] = []

    def process(body: int, message: Message) -> None:
        received.append(body)
        message.ack()

    with connection.Consumer(queue, callbacks=[process]):
        for _ in eventloop(connection, limit=5, timeout=15):
            pass
    assert received == [0, 1, 2, 3, 4]


def test_queue_with_several_bindings_gets_all_its_topics(connection: Connection) -> None:
    name = unique_name("topics")
    topics = Exchange(name, "topic", auto_delete=True)
    queue = Queue(name, [binding(topics, "order.#"), binding(topics, "*.urgent")], exclusive=True)
    with connection.Consumer(queue, on_message=lambda message: received.append(message.delivery_info["routing_key"])):
        received: list[str] = []
        producer = connection.Producer(exchange=topics)
        for key in ("order.created", "note.urgent", "order.urgent", "note.late", "order"):
            producer.publish("", routing_key=key)
        wait_until(lambda: len(received) == 4, pause=drain(connection))
    assert received == ["order.created", "note.urgent", "order.urgent", "order"]


def test_queue_options_become_queue_arguments_that_work(channel: Channel) -> None:
    queue = declared(channel, max_priority=10, max_length=3, message_ttl=60.0, expires=60.0)
    for body, priority in (("low", 1), ("high", 9), ("middle", 5)):
        publish(queue, body, priority=priority)
    assert [queue.get(no_ack=True).decode() for _ in range(3)] == ["high", "middle", "low"]
    with pytest.raises(amqp.PreconditionFailed, match="inequivalent arg 'x-max-length'"):
        Queue(queue.name, max_priority=10, max_length=2, message_ttl=60.0, expires=60.0)(channel).queue_declare()


def test_full_priority_queue_drops_its_head_which_has_the_highest_priority(channel: Channel) -> None:
    queue = declared(channel, max_priority=10, max_length=2)
    for body, priority in (("low", 1), ("high", 9), ("middle", 5)):
        publish(queue, body, priority=priority)
    assert [queue.get(no_ack=True).decode() for _ in range(2)] == ["middle", "low"]


def test_purge_and_delete_tell_the_number_of_messages(channel: Channel) -> None:
    queue = declared(channel)
    publish(queue, 1, 2, 3)
    assert queue.purge() == 3
    publish(queue, 4)
    assert queue.delete() == 1


def test_exchange_bound_to_an_exchange_passes_messages_on(channel: Channel) -> None:
    source = Exchange(unique_name("source"), "topic")(channel)
    source.declare()
    queue = declared(channel)
    queue.exchange.bind_to(source, routing_key=queue.routing_key)
    Producer(channel, source).publish("through", routing_key=queue.routing_key)
    assert queue.get(no_ack=True).decode() == "through"
    queue.exchange.unbind_from(source, routing_key=queue.routing_key)


def test_broadcast_reaches_every_listener(broker: BrokerProcess, connection: Connection) -> None:
    name = unique_name("broadcast")
    received: list[tuple[int, str]] = []

    def listener(number: int) -> Consumer:
        return connection.Consumer(
            Broadcast(name), callbacks=[lambda body, _message: received.append((number, body))], no_ack=True
        )

    with listener(1), listener(2), listener(3), Connection(broker.url) as other:
        other.Producer().publish("everybody", exchange=Exchange(name, "fanout"))
        wait_until(lambda: len(received) == 3, pause=drain(connection))
    assert sorted(received) == [(1, "everybody"), (2, "everybody"), (3, "everybody")]


def test_unroutable_mandatory_message_reaches_on_return(connection: Connection) -> None:
    returned: list[tuple[Any, ...]] = []
    producer = connection.Producer(on_return=lambda *arguments: returned.append(arguments))
    nowhere = unique_name("nowhere")
    producer.publish("lost", exchange="amq.direct", routing_key=nowhere, mandatory=True)
    wait_until(lambda: returned, pause=drain(connection))
    [(exception, exchange, routing_key, message)] = returned
    assert (exception.reply_code, exchange, routing_key) == (312, "amq.direct", nowhere)
    assert message.body in ("lost", b"lost")


@pytest.fixture
def confirming(broker: BrokerProcess) -> Iterator[Connection]:
    with Connection(broker.url, transport_options={"confirm_publish": True}) as connection:
        yield connection


def test_confirmed_publish_is_in_the_queue_when_it_returns(confirming: Connection) -> None:
    queue = declared(confirming.default_channel)
    for expected in (1, 2, 3):
        publish(queue, "work")
        assert queue.queue_declare(passive=True).message_count == expected


def test_publish_to_a_full_queue_is_nacked(confirming: Connection) -> None:
    queue = declared(confirming.default_channel, max_length=1, queue_arguments={"x-overflow": "reject-publish"})
    publish(queue, "fits")
    with pytest.raises(amqp.exceptions.MessageNacked):
        publish(queue, "too much")
    assert queue.get(no_ack=True).decode() == "fits"


def test_confirmed_publish_to_a_missing_exchange_raises_not_found(confirming: Connection) -> None:
    with pytest.raises(amqp.NotFound, match="no exchange 'missing' in vhost '/'"):
        confirming.Producer(auto_declare=False).publish("", exchange="missing", routing_key="key")
    assert confirming.connected
    assert declared(confirming.channel()).purge() == 0


def test_pools_share_connections_and_producers(broker: BrokerProcess, channel: Channel) -> None:
    queue = declared(channel)
    own = Connection(broker.url, transport_options={"confirm_publish": True})
    for number in range(20):
        with producers[own].acquire(block=True) as producer:
            producer.publish(number, exchange=queue.exchange, routing_key=queue.routing_key)
    with connections[own].acquire(block=True) as connection:
        assert queue(connection.default_channel).purge() == 20
    connections[own].force_close_all()
    producers[own].force_close_all()


def test_native_delayed_delivery_holds_a_message_for_its_countdown(connection: Connection) -> None:
    prefix = unique_name("delay")
    declare_native_delayed_delivery_exchanges_and_queues(connection, "classic", prefix)
    name = unique_name("delayed")
    queue = Queue(name, Exchange(name, "topic"), routing_key=name)
    queue(connection.default_channel).declare()
    bind_queue_to_native_delayed_delivery_exchange(connection, queue, prefix)
    key = calculate_routing_key(1, name)
    connection.Producer().publish("later", exchange=Exchange(f"{prefix}_celery_delayed_27", "topic"), routing_key=key)
    received: list[Message] = []
    with connection.Consumer(queue, on_message=received.append, no_ack=True):
        wait_until(lambda: received, pause=drain(connection))
    assert received[0].decode() == "later"
    [death] = received[0].headers["x-death"]
    assert (death["queue"], death["reason"]) == (f"{prefix}_celery_delayed_0", "expired")
