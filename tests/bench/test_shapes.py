"""Generated messages have the properties and headers of libraries, in their order and of their types."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Iterator
from typing import Any

import pika
import pytest
from celery import Celery
from pika.adapters.blocking_connection import BlockingChannel

from bench.generator import Load, LoadError, build_generator, run_load
from compat.brokers import AmqpBroker

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="the load generator needs a C compiler")

COUNT = 300
UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
TRACEPARENT = r"00-[0-9a-f]{32}-[0-9a-f]{16}-01"

Message = tuple[str, pika.BasicProperties, bytes]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AmqpBroker]:
    """A broker that delivers headers in the order in which they were published, as RabbitMQ 3.13 does."""
    build_generator()
    process = AmqpBroker(tmp_path_factory.mktemp("broker"), options=("--compat", "3.13"))
    process.start()
    yield process
    process.kill()


@pytest.fixture
def channel(broker: AmqpBroker) -> Iterator[BlockingChannel]:
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        yield connection.channel()


def taken(channel: BlockingChannel, queue: str) -> list[Message]:
    found = []
    while (message := channel.basic_get(queue, auto_ack=True))[0] is not None:
        found.append((message[0].routing_key, message[1], message[2]))
    return found


def published(broker: AmqpBroker, channel: BlockingChannel, load: Load) -> list[Message]:
    """Return the messages that this load leaves in its first queue."""
    prefix = f"{load.shape}-kept"
    options = {**vars(load), "consumers": 0, "window": 100, "prefix": prefix, "keep": True}
    run_load(Load(**options), broker, broker.pid)
    messages = taken(channel, f"{prefix}.queue.00000")
    channel.queue_delete(f"{prefix}.queue.00000")
    return messages


def shape(broker: AmqpBroker, channel: BlockingChannel, name: str) -> list[Message]:
    return published(broker, channel, Load(messages=COUNT, shape=name, body=400))


def wire_types(headers: dict[str, Any]) -> list[tuple[str, object]]:
    """Return the names of headers in their order, each with the type of its value."""

    def type_of(value: object) -> object:
        return [type(one) for one in value] if isinstance(value, list) else type(value)

    return [(name, type_of(value)) for name, value in headers.items()]


def present(properties: pika.BasicProperties) -> set[str]:
    return {name for name, value in vars(properties).items() if value is not None}


def test_a_task_is_what_celery_sends(broker: AmqpBroker, channel: BlockingChannel) -> None:
    app = Celery(broker=broker.url, backend="rpc://", set_as_current=False)

    def charge(order: int, terms: dict[str, str], amount: float) -> None: ...

    app.task(name="shop.orders.tasks.charge")(charge).delay(4711, {"currency": "EUR"}, amount=12.5)
    app.close()
    [(_, celerys, _)] = taken(channel, "celery")
    for _, ours, _ in shape(broker, channel, "celery"):
        assert wire_types(ours.headers) == wire_types(celerys.headers)
        assert present(ours) == present(celerys)
        assert (ours.content_type, ours.content_encoding) == (celerys.content_type, celerys.content_encoding)
        assert (ours.delivery_mode, ours.priority) == (celerys.delivery_mode, celerys.priority)
        assert ours.headers["id"] == ours.headers["root_id"] == ours.correlation_id
        assert len(ours.correlation_id) == len(celerys.correlation_id)


def test_spring_adds_its_type_its_correlations_and_both_formats_of_tracing(
    broker: AmqpBroker, channel: BlockingChannel
) -> None:
    for _, message, _ in shape(broker, channel, "spring"):
        headers = message.headers
        # Spring copies headers into a HashMap: their order is that of hashes, not of names.
        assert list(headers) != sorted(headers)
        assert headers.keys() == {
            "__TypeId__",
            "traceparent",
            "b3",
            "spring_returned_message_correlation",
            "spring_listener_return_correlation",
        }
        assert headers["b3"].split("-")[:2] == headers["traceparent"].split("-")[1:3]
        assert (message.content_type, message.content_encoding) == ("application/json", "UTF-8")
        # MessageProperties has priority 0 and persistent messages as defaults.
        assert (message.delivery_mode, message.priority) == (2, 0)


def test_masstransit_has_ids_and_an_activity(broker: AmqpBroker, channel: BlockingChannel) -> None:
    for _, message, _ in shape(broker, channel, "servicebus"):
        assert list(message.headers) == ["Content-Type", "MT-Activity-Id", "publishId"]
        assert message.headers["publishId"].isdecimal()
        assert message.content_type == message.headers["Content-Type"] == "application/vnd.masstransit+json"
        assert present(message) == {"content_type", "headers", "delivery_mode", "correlation_id", "message_id"}


def test_node_writes_short_integers_and_a_trace(broker: AmqpBroker, channel: BlockingChannel) -> None:
    for _, message, _ in shape(broker, channel, "node"):
        assert wire_types(message.headers) == [
            ("account-id", str),
            ("x-retry-count", int),
            ("x-amount", int),
            ("x-is-test", bool),
            ("traceparent", str),
            ("tracestate", str),
        ]
        assert present(message) >= {"message_id", "correlation_id", "timestamp", "type", "app_id"}


def test_bare_ids_have_no_headers(broker: AmqpBroker, channel: BlockingChannel) -> None:
    for _, message, _ in shape(broker, channel, "ids"):
        assert "headers" not in present(message)


@pytest.mark.parametrize("name", ["celery", "spring", "servicebus", "node", "ids"])
def test_no_message_comes_twice(broker: AmqpBroker, channel: BlockingChannel, name: str) -> None:
    # The generator has 2048 messages of a publisher and renews their digits.
    messages = published(broker, channel, Load(messages=4200, shape=name, body=400))
    assert len({str(properties) for _, properties, _ in messages}) == 4200


def test_sizes_have_the_requested_median_and_are_far_apart(broker: AmqpBroker, channel: BlockingChannel) -> None:
    sizes = sorted(len(body) for _, _, body in published(broker, channel, Load(messages=2000, shape="node", body=400)))
    assert 340 < statistics.median(sizes) < 460
    assert sizes[200] < 200
    assert sizes[1800] > 800
    assert sizes[-1] > 2000


def test_keys_repeat_or_never_do(broker: AmqpBroker, channel: BlockingChannel) -> None:
    load = Load(messages=4200, shape="node", body=100, topic_bindings=10)
    assert len({key for key, _, _ in published(broker, channel, load)}) == 10
    unique = Load(messages=4200, shape="node", body=101, topic_bindings=11, unique_keys=True)
    assert len({key for key, _, _ in published(broker, channel, unique)}) == 4200


def test_a_message_of_each_account_has_one_binding(broker: AmqpBroker) -> None:
    load = Load(messages=1000, shape="node", queues=3, consumers=3, header_bindings=100)
    assert run_load(load, broker, broker.pid).received == 1000


def test_an_unknown_shape_is_refused(broker: AmqpBroker) -> None:
    with pytest.raises(LoadError, match="no such --shape"):
        run_load(Load(shape="fax"), broker, broker.pid)
