from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.broker.matching import Criteria, described, failure, near_misses, subset_difference
from amqp_broker.broker.record import Record
from amqp_broker.errors import InvalidParameter
from tests.peer import Lab, Peer


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def peer(lab: Lab) -> Peer:
    return lab.connect()


@pytest.fixture
def record(lab: Lab, peer: Peer) -> Record:
    """One message, with everything; it is in the queue `orders`."""
    peer.declare("orders")
    record = lab.broker.records.start(lab.vhost)
    lab.vhost.bind(lab.vhost.exchanges["amq.topic"], lab.vhost.queues["orders"], "#", {})
    peer.publish(
        "order.created.42",
        b'{"id": 42, "lines": [{"sku": "a", "count": 1}], "paid": true, "note": null}',
        exchange="amq.topic",
        headers={"tenant": "acme", "n": 3},
        content_type="application/json",
        correlation_id="c1",
    )
    return record


@pytest.mark.parametrize(
    "criteria",
    [
        {},
        {"event": None},
        {"exchange": "amq.topic"},
        {"routing_key": "order.created.42"},
        {"routing_key": "order.*"},
        {"routing_key": "*.4?"},
        {"queue": "orders"},
        {"body_regex": '"id": \\d+'},
        {"body_json": {"id": 42}},
        {"body_json": {"lines": [{"sku": "a"}]}},
        {"body_json": {"note": None}},
        {"headers": {"tenant": "acme"}},
        {"properties": {"correlation_id": "c1", "headers": {"n": 3}}},
        {"exchange": "amq.topic", "queue": "orders", "headers": {"n": 3}, "body_json": {"paid": True}},
    ],
)
def test_what_holds_matches(record: Record, criteria: dict[str, Any]) -> None:
    assert record.count(Criteria(**criteria)) == 1


@pytest.mark.parametrize(
    ("criteria", "difference"),
    [
        ({"event": "ack"}, "event is publish, not ack"),
        ({"exchange": "x"}, "exchange is 'amq.topic', not 'x'"),
        ({"routing_key": "order.created"}, "routing_key is 'order.created.42', not 'order.created'"),
        ({"routing_key": "ORDER.*"}, "routing_key is 'order.created.42', not 'ORDER.*'"),
        ({"queue": "other"}, "queue is 'orders', not 'other'"),
        ({"since": 1}, "it is not after #1"),
        ({"body_json": {"id": 43}}, "body.id is 42, not 43"),
        ({"body_json": {"paid": 1}}, "body.paid is True, not 1"),
        ({"body_json": {"lines": []}}, "body.lines is [{'sku': 'a', 'count': 1}], not []"),
        ({"body_json": {"lines": [{"sku": "b"}]}}, "body.lines[0].sku is 'a', not 'b'"),
        ({"body_json": {"none": None}}, "body.none is missing"),
        ({"body_json": []}, None),
        ({"body_regex": "nothing"}, None),
        ({"body": b"{}"}, None),
        ({"headers": {"tenant": "other"}}, "headers.tenant is 'acme', not 'other'"),
        ({"headers": {"user": 1}}, "headers.user is missing"),
        ({"properties": {"priority": 1}}, "properties.priority is missing"),
    ],
)
def test_what_does_not_hold_is_told(record: Record, criteria: dict[str, Any], difference: str | None) -> None:
    [(event, differences)] = near_misses(record, Criteria(**criteria))
    assert record.count(Criteria(**criteria)) == 0
    assert event.number == 1
    assert difference is None or differences == [difference]
    assert len(differences) == 1


def test_a_body_that_is_no_json_matches_none(lab: Lab, peer: Peer) -> None:
    record = lab.broker.records.start(lab.vhost)
    peer.publish("q", b"\xff{")
    assert record.count(Criteria(body_json={})) == 0
    assert record.count(Criteria(body=b"\xff{")) == 1


def test_a_body_that_has_fallen_out_of_the_record_matches_none(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    record = lab.broker.records.start(lab.vhost)
    peer.publish("q", b"x")
    peer.get("q")
    record._skip()
    assert [record.count(Criteria("deliver")), record.count(Criteria("deliver", body=b"x"))] == [1, 0]
    [(_, differences)] = near_misses(record, Criteria("deliver", body=b"x"))
    assert differences == ["body is no longer recorded"]


def test_a_regular_expression_that_takes_too_long_takes_so_once(lab: Lab, peer: Peer) -> None:
    record = lab.broker.records.start(lab.vhost)
    for _ in range(1000):
        peer.publish("q", b"a" * 5000)
    slow = Criteria(body_regex="(a|aa)+(a|aa)+(a|aa)+[^a]x")
    slow.check()
    assert record.count(slow) == 0
    with pytest.raises(InvalidParameter, match="takes too long"):
        slow.check()


def test_criteria_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="event 'acked' is none of publish, deliver"):
        Criteria("acked").check()
    with pytest.raises(InvalidParameter, match="is invalid"):
        Criteria(body_regex="(").check()


@pytest.mark.parametrize(
    ("wanted", "value"), [({}, {"a": 1}), ({"a": {}}, {"a": {"b": 1}}), ([{}], [{"a": 1}]), (1, 1.0), (None, None)]
)
def test_a_subset_lacks_nothing(wanted: Any, value: Any) -> None:
    assert subset_difference(wanted, value) is None


@pytest.mark.parametrize(("wanted", "value"), [({}, []), ([1], [1, 2]), (0, False), (True, 1), ("1", 1), (None, 0)])
def test_what_is_no_subset_lacks_something(wanted: Any, value: Any) -> None:
    assert subset_difference(wanted, value) is not None


def test_a_failure_tells_what_is_there_and_what_came_closest(lab: Lab, peer: Peer) -> None:
    peer.declare("orders")
    record = lab.broker.records.start(lab.vhost)
    peer.publish("invoices", b"a")
    peer.publish("orders", b"b")
    text = failure(record, Criteria(routing_key="orders", body=b"a"), "1")
    assert text.splitlines() == [
        "1 wanted, 0 there: event publish, routing_key 'orders', body 'a'",
        "in vhost '/', of 2 events recorded",
        "closest:",
        "  #2 publish of message 2 (exchange '', routing key 'orders', routed to orders)",
        "      body is 'b', not 'a'",
        "  #1 publish of message 1 (exchange '', routing key 'invoices', routed to no queue)",
        "      routing_key is 'invoices', not 'orders'",
    ]


def test_events_are_described_with_their_place(lab: Lab, peer: Peer, record: Record) -> None:
    peer.get("orders")
    assert described(record.events[-1]) == (
        "#2 deliver of message 1 in queue 'orders' (exchange 'amq.topic', routing key 'order.created.42')"
    )
