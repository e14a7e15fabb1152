from __future__ import annotations

import pytest

from amqp_broker.testing import EmbeddedBroker
from pyspark_amqp.content_header import encode_texts
from pyspark_amqp.errors import BrokerError, ConnectionLost
from pyspark_amqp.format_options import SinkOptions, read_sink
from pyspark_amqp.row_publisher import Confirms, Publisher
from tests.pyspark_amqp.conftest import At


def options_of(at: At, **given: object) -> SinkOptions:
    return read_sink({"url": at.url, **{name: str(value) for name, value in given.items()}})


def publish(options: SinkOptions, rows: list[dict[str, object]]) -> None:
    publisher = Publisher(options)
    try:
        for row in rows:
            publisher.publish(row)
        publisher.finish()
    finally:
        publisher.close()


def test_confirms_may_arrive_in_any_order() -> None:
    confirms = Confirms()
    confirms.published = 10
    for tag, multiple, left in [(3, False, 9), (2, True, 7), (9, False, 6), (8, False, 5), (3, True, 5), (7, True, 1)]:
        confirms.confirm(tag, multiple)
        assert confirms.open_count == left
    confirms.confirm(0, True)
    assert (confirms.open_count, confirms.beyond) == (0, set())


def test_rows_are_published_with_their_properties(broker: At) -> None:
    queue = broker.queue()
    row = {
        "body": "ä",
        "message_id": "1",
        "priority": 3,
        "timestamp": 1_700_000_000,
        "headers": encode_texts({"a": "b", "n": None}),
    }
    publish(options_of(broker, routingKey=queue), [row, {"body": b"\xff", "app_id": "x", "delivery_mode": 1}])
    (first, body), (second, other) = broker.taken(queue)
    assert (body, first.message_id, first.priority, first.timestamp) == ("ä".encode(), "1", 3, 1_700_000_000)
    assert (first.headers, first.delivery_mode) == ({"a": "b", "n": None}, 2)
    assert (other, second.app_id, second.delivery_mode) == (b"\xff", "x", 1)


def test_columns_select_exchange_and_routing_key(broker: At) -> None:
    queue = broker.queue()
    broker.channel.queue_bind(queue, "amq.topic", "a.*")
    publish(
        options_of(broker),
        [{"body": b"1", "routing_key": queue}, {"body": b"2", "exchange": "amq.topic", "routing_key": "a.b"}],
    )
    assert [body for _, body in broker.taken(queue)] == [b"1", b"2"]


def test_bodies_of_every_size_arrive_whole_with_a_small_window(broker: At) -> None:
    queue = broker.queue()
    bodies = [b"", b"x", bytes(range(256)) * 4096, b"y" * 131_064, b"z" * 131_065, *[b"%d" % n for n in range(500)]]
    publish(options_of(broker, routingKey=queue, maxInFlight=7), [{"value": body} for body in bodies])
    assert [body for _, body in broker.taken(queue)] == bodies


def test_an_unroutable_message_is_an_error(broker: At) -> None:
    with pytest.raises(BrokerError, match=r"'mandatory': message to exchange '' with routing key 'nope'.*NO_ROUTE"):
        publish(options_of(broker, routingKey="nope"), [{"body": b"x"}])
    publish(options_of(broker, routingKey="nope", mandatory=False), [{"body": b"x"}])


def test_a_nack_is_an_error(broker: At) -> None:
    queue = broker.queue(arguments={"x-max-length": 3, "x-overflow": "reject-publish"})
    with pytest.raises(BrokerError, match="nacked"):
        publish(options_of(broker, routingKey=queue), [{"body": b"x"}] * 10)


def test_a_missing_confirm_is_an_error() -> None:
    with EmbeddedBroker() as broker:
        at = At("amqp_broker", broker.url)
        queue = at.queue()
        broker.faults.add("confirm_drop", routing_key=queue)
        with pytest.raises(BrokerError, match=r"'confirmTimeoutMs'.*none of 2 messages within 100 ms"):
            publish(options_of(at, routingKey=queue, confirmTimeoutMs=100), [{"body": b"x"}] * 2)
        at.connection.close()


@pytest.mark.parametrize("body", [b"x", b"x" * 300_000])
def test_an_alarm_is_waited_for_whatever_the_size_of_the_rows(body: bytes) -> None:
    with EmbeddedBroker() as broker:
        at = At("amqp_broker", broker.url)
        queue = at.queue()
        broker.faults.add("block", on="publish", duration_ms=700, times=1)
        # The broker blocks after the first row.
        publish(options_of(at, routingKey=queue, confirmTimeoutMs=100, maxInFlight=1), [{"body": body}] * 3)
        assert [len(found) for _, found in at.taken(queue)] == [len(body)] * 3
        at.connection.close()


def test_an_alarm_that_does_not_end_is_an_error_after_the_time_for_a_broker_that_is_away() -> None:
    with EmbeddedBroker() as broker:
        at = At("amqp_broker", broker.url)
        queue = at.queue()
        broker.faults.add("block", on="publish", times=1)
        options = options_of(at, routingKey=queue, confirmTimeoutMs=100, maxInFlight=1, reconnectTimeout="1s")
        with pytest.raises(ConnectionLost, match=r"has blocked publishers .* \(reconnectTimeout of 1 s is over\)"):
            publish(options, [{"body": b"x"}] * 2)
        broker.faults.clear()
        at.connection.close()


def test_a_lost_connection_is_an_error() -> None:
    with EmbeddedBroker() as broker:
        given = {"url": broker.url, "routingKey": "q", "mandatory": "false", "reconnectTimeout": "0"}
        publisher = Publisher(read_sink(given))
        broker.stop()
        with pytest.raises(ConnectionLost):
            _publish_many(publisher)
        publisher.close()


def _publish_many(publisher: Publisher) -> None:
    for _ in range(1000):
        publisher.publish({"body": b"x" * 10_000})


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"body": None, "routing_key": "a"}, "the body of a row is NULL; with nullBody=empty"),
        ({"body": b"", "routing_key": None}, "the routing_key of a row is NULL"),
        ({"body": b"", "routing_key": "ä" * 128}, "routing_key has 256 octets"),
        ({"body": b"", "routing_key": "a", "priority": 300}, "priority must be from 0 to 255"),
    ],
)
def test_a_row_that_is_not_a_message_is_an_error(amqp_broker: At, row: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        publish(options_of(amqp_broker), [row])


def test_a_null_body_is_an_empty_one_where_it_is_asked_for(broker: At) -> None:
    queue = broker.queue()
    publish(options_of(broker, routingKey=queue, nullBody="empty"), [{"body": None, "message_id": "1"}])
    [(properties, body)] = broker.taken(queue)
    assert (properties.message_id, body) == ("1", b"")


def test_the_cache_of_routing_keys_is_bounded(amqp_broker: At) -> None:
    publisher = Publisher(options_of(amqp_broker, mandatory=False))
    for number in range(10_500):
        publisher.publish({"body": b"", "routing_key": str(number)})
    assert len(publisher._methods) <= 10_000
    publisher.finish()
    publisher.close()
