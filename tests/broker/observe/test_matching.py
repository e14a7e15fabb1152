from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.observe.event_log import EventLog
from amqp_broker.broker.observe.matching import Criteria, described, failure, near_misses, subset_difference
from tests.peer import Lab, Peer


@pytest.fixture
def log(lab: Lab, peer: Peer) -> EventLog:
    """The log of one message with all attributes in the queue `orders`."""
    peer.declare("orders")
    log = lab.broker.event_logs.start(lab.vhost)
    lab.vhost.bind(lab.vhost.exchanges["amq.topic"], lab.vhost.queues["orders"], "#", {})
    peer.publish(
        "order.created.42",
        b'{"id": 42, "lines": [{"sku": "a", "count": 1}], "paid": true, "note": null}',
        exchange="amq.topic",
        headers={"tenant": "acme", "n": 3},
        content_type="application/json",
        correlation_id="c1",
    )
    return log


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
def test_a_matching_event_is_counted(log: EventLog, criteria: dict[str, Any]) -> None:
    assert log.count(Criteria(**criteria)) == 1


@pytest.mark.parametrize(
    ("criteria", "difference"),
    [
        ({"event": "ack"}, "event is publish, not ack"),
        ({"exchange": "x"}, "exchange is 'amq.topic', not 'x'"),
        ({"routing_key": "order.created"}, "routing_key is 'order.created.42', not 'order.created'"),
        ({"routing_key": "ORDER.*"}, "routing_key is 'order.created.42', not 'ORDER.*'"),
        ({"queue": "other"}, "queue is 'orders', not 'other'"),
        ({"since": 1}, "it is not after event 1"),
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
def test_a_near_miss_names_the_difference(log: EventLog, criteria: dict[str, Any], difference: str | None) -> None:
    [(event, differences)] = near_misses(log, Criteria(**criteria))
    assert log.count(Criteria(**criteria)) == 0
    assert event.number == 1
    assert difference is None or differences == [difference]
    assert len(differences) == 1


def test_a_matching_event_is_no_near_miss(log: EventLog) -> None:
    assert near_misses(log, Criteria()) == []


def test_events_match_only_their_own_queue(log: EventLog, peer: Peer) -> None:
    peer.get("orders")
    assert log.count(Criteria("deliver", queue="orders")) == 1
    misses = {event.kind: differences for event, differences in near_misses(log, Criteria("deliver", queue="other"))}
    assert misses["deliver"] == ["queue is 'orders', not 'other'"]


def test_an_invalid_json_body_matches_no_json(lab: Lab, peer: Peer) -> None:
    log = lab.broker.event_logs.start(lab.vhost)
    peer.publish("q", b"\xff{")
    assert log.count(Criteria(body_json={})) == 0
    assert log.count(Criteria(body=b"\xff{")) == 1


def test_a_dropped_body_matches_nothing(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    log = lab.broker.event_logs.start(lab.vhost)
    peer.publish("q", b"x")
    peer.get("q")
    log._skip()
    assert [log.count(Criteria("deliver")), log.count(Criteria("deliver", body=b"x"))] == [1, 0]
    [(_, differences)] = near_misses(log, Criteria("deliver", body=b"x"))
    assert differences == ["body is no longer in the log"]


def test_a_slow_regular_expression_is_tried_once(lab: Lab, peer: Peer) -> None:
    log = lab.broker.event_logs.start(lab.vhost)
    for _ in range(1000):
        peer.publish("q", b"a" * 5000)
    slow = Criteria(body_regex="(a|aa)+(a|aa)+(a|aa)+[^a]x")
    slow.check()
    assert log.count(slow) == 0
    with pytest.raises(InvalidParameter, match="takes too long"):
        slow.check()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"body": "text"}, "body is 'text', which is not bytes"),
        ({"properties": {"correlationId": "1"}}, "property 'correlationId' is not one of content_type, "),
        ({"event": "acked"}, "event 'acked' is not one of publish, tx_publish, "),
        ({"event": "any"}, "; for every event, give None in Python, and any over HTTP and on the command line"),
        ({"event": "dead-letter"}, "event 'dead-letter' is not one of publish, "),
        ({"body_regex": "("}, "is invalid"),
        ({"exchange": b"amq.topic"}, "exchange is b'amq.topic', which is not a text"),
        ({"routing_key": 42}, "routing_key is 42, which is not a text"),
        ({"queue": ["orders"]}, "queue is ['orders'], which is not a text"),
        ({"headers": [("n", 3)]}, "headers is [('n', 3)], which is not a mapping"),
        ({"properties": "app_id"}, "properties is 'app_id', which is not a mapping"),
    ],
)
def test_criteria_that_no_event_can_meet_are_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        Criteria(**given)
    assert reason in str(caught.value)


def test_amq_default_is_the_default_exchange(lab: Lab, peer: Peer) -> None:
    log = lab.broker.event_logs.start(lab.vhost)
    peer.publish("q", b"x")
    assert [log.count(Criteria(exchange=name)) for name in ("amq.default", "", "amq.topic")] == [1, 1, 0]


@pytest.mark.parametrize(("key", "glob"), [("items[0]", "items[0]"), ("a*", r"a\*"), ("a?", r"a\?")])
def test_a_routing_key_with_brackets_or_wildcards_can_be_named(lab: Lab, peer: Peer, key: str, glob: str) -> None:
    log = lab.broker.event_logs.start(lab.vhost)
    peer.publish("ab", b"other")
    peer.publish(key, b"this")
    assert [event.routing_keys for event in log.matching(Criteria(routing_key=glob))] == [[key]]


@pytest.mark.parametrize(
    ("wanted", "value"), [({}, {"a": 1}), ({"a": {}}, {"a": {"b": 1}}), ([{}], [{"a": 1}]), (1, 1.0), (None, None)]
)
def test_a_value_that_contains_the_criteria_has_no_difference(wanted: Any, value: Any) -> None:
    assert subset_difference(wanted, value) is None


@pytest.mark.parametrize(("wanted", "value"), [({}, []), ([1], [1, 2]), (0, False), (True, 1), ("1", 1), (None, 0)])
def test_a_missing_part_of_the_criteria_is_described(wanted: Any, value: Any) -> None:
    assert subset_difference(wanted, value) is not None


def test_a_failure_names_the_count_and_the_closest_events(lab: Lab, peer: Peer) -> None:
    peer.declare("orders")
    log = lab.broker.event_logs.start(lab.vhost)
    peer.publish("invoices", b"a")
    peer.publish("orders", b"b")
    text = failure(log, Criteria(routing_key="orders", body=b"a"), "1")
    assert text.splitlines() == [
        "1 wanted, 0 found: event publish, routing_key 'orders', body 'a'",
        "in vhost '/', of 2 events in the log",
        "closest:",
        "  event 2: publish of message 2 (exchange '', routing key 'orders', routed to orders)",
        "      body is 'b', not 'a'",
        "  event 1: publish of message 1 (exchange '', routing key 'invoices', routed to no queue)",
        "      routing_key is 'invoices', not 'orders'",
    ]


def test_a_failure_for_an_unwanted_event_shows_it(lab: Lab, peer: Peer) -> None:
    peer.declare("orders")
    log = lab.broker.event_logs.start(lab.vhost)
    for _ in range(5):
        peer.publish("orders", b"a")
    assert failure(log, Criteria(queue="orders"), "none").splitlines() == [
        "none wanted, 5 found: event publish, queue 'orders'",
        "in vhost '/', of 5 events in the log",
        "found:",
        *(
            f"  event {number}: publish of message {number} (exchange '', routing key 'orders', routed to orders)"
            for number in (1, 2, 3)
        ),
        "  and 2 more",
    ]


def test_a_failure_says_how_many_messages_were_published_before_the_log(lab: Lab, peer: Peer) -> None:
    peer.declare("orders")
    peer.publish("orders", b"a")
    first = lab.broker.event_logs.start(lab.vhost)
    beginning = "the log began at 22:13:20.000 UTC of the broker's clock, and"
    assert failure(first, Criteria(), "1").splitlines()[2] == f"{beginning} 1 message was published before"
    lab.broker.event_logs.stop(lab.vhost)
    peer.publish("orders", b"b")
    second = lab.broker.event_logs.start(lab.vhost)
    assert failure(second, Criteria(), "none").splitlines()[2] == f"{beginning} 2 messages were published before"


def test_descriptions_of_events_name_their_place(lab: Lab, peer: Peer, log: EventLog) -> None:
    peer.get("orders")
    assert described(log.events[-1], log.vhost) == (
        "event 2: deliver of message 1 in queue 'orders' (exchange 'amq.topic', routing key 'order.created.42')"
    )


def test_a_rolled_back_publish_matches_nothing(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    log = lab.broker.event_logs.start(lab.vhost)
    peer.call(commands.Tx.Select())
    peer.publish("q", b"1")
    assert log.count(Criteria(queue="q")) == 0
    peer.call(commands.Tx.Commit())
    peer.publish("q", b"2")
    peer.call(commands.Tx.Rollback())
    assert [event.number for event in log.matching(Criteria(queue="q"))] == [1]
    assert [event.number for event in log.matching(Criteria("rollback", body=b"2"))] == [2]


def test_a_hint_is_given_while_the_topology_is_as_it_was(lab: Lab, peer: Peer) -> None:
    peer.declare("orders")
    log = lab.broker.event_logs.start(lab.vhost)
    peer.publish("order", b"")
    assert "routed to no queue; did you mean 'orders'?" in described(log.events[0], lab.vhost)
    peer.declare("order")
    assert described(log.events[0], lab.vhost).endswith("routed to no queue)")


def test_a_message_that_a_fault_kept_from_its_queues_is_described_with_them(
    lab: Lab, log: EventLog, peer: Peer
) -> None:
    peer.declare("orders")
    lab.broker.faults.add(Rule("return", times=1))
    peer.publish("orders", b"x", mandatory=True)
    [event] = [event for event in log.events if event.more.get("kept_from")]
    assert described(event, lab.vhost).endswith("routed to no queue; fault return kept it from 'orders')")


def test_a_delayed_message_is_described_by_its_exchange(lab: Lab, peer: Peer) -> None:
    log = lab.broker.event_logs.start(lab.vhost)
    arguments: FieldTable = {"x-delayed-type": "fanout"}
    peer.call(commands.Exchange.Declare(exchange="x", exchange_type="x-delayed-message", arguments=arguments))
    peer.publish("k", b"", exchange="x", headers={"x-delay": 1000})
    assert described(log.events[0], lab.vhost).endswith("routing key 'k', delayed in x)")
