"""Events that happen to messages in a row are one row of a record."""

from __future__ import annotations

import pytest

from amqp_broker.amqp.message import Address, Message, Properties, SpecialMessage
from amqp_broker.broker.clients.peer import Peer
from amqp_broker.broker.observe.message_trace import MessageTrace
from amqp_broker.broker.vhost import VHost
from tests.broker.observe.records import declare, new_client, new_traced_vhost, record, records, rows
from tests.broker_parts import CollectingConsumer


@pytest.fixture
def vhost() -> VHost:
    """A vhost whose events go to the stream `trace`."""
    return new_traced_vhost()


@pytest.fixture
def connection(vhost: VHost) -> Peer:
    return new_client(vhost)


def trace_of(vhost: VHost) -> MessageTrace:
    assert vhost.trace is not None
    return vhost.trace


def numbered(vhost: VHost, connection: Peer, count: int) -> list[Message]:
    """Report publishes of messages with one address, to a queue that does not get them."""
    queue = vhost.queues.get("q") or declare(vhost, "q")
    messages, address = [], Address("", "q")
    for _ in range(count):
        messages.append(trace_of(vhost).numbered(Message.build(address, Properties(), b"body")))
        trace_of(vhost).published(connection, 1, messages[-1], [queue])
    return messages


def shown(vhost: VHost) -> list[tuple[str, list[int], list[int]]]:
    """Return kind, numbers and values of all rows but those of publishes."""
    return [(row.event, row.numbers, row.values) for row in rows(vhost) if row.event != "publish"]


def test_deliveries_and_acks_of_a_consumer_are_one_row_each(vhost: VHost, connection: Peer) -> None:
    messages = numbered(vhost, connection, 6)
    one, other = (CollectingConsumer(vhost.queues["q"], tag=tag) for tag in ("one", "other"))
    trace = trace_of(vhost)
    for message in messages[:3]:
        trace.delivered_to(one, message, False)
        trace.acked_by(one, message)
    for message in messages[3:]:
        trace.delivered_to(other if message is messages[4] else one, message, False)
    assert shown(vhost) == [
        ("deliver", [1, 2, 3, 4, 6], [4] * 5),
        ("ack", [1, 2, 3], [0] * 3),
        ("deliver", [5], [4]),
    ]


def test_bodies_of_several_sizes_have_a_list_of_sizes(vhost: VHost, connection: Peer) -> None:
    queue, trace = declare(vhost, "q"), trace_of(vhost)
    consumer = CollectingConsumer(queue)
    address = Address("", "q")
    for size in (3, 5):
        message = trace.numbered(Message.build(address, Properties(), bytes(size)))
        trace.published(connection, 1, message, [queue])
        trace.delivered_to(consumer, message, False)
    assert [row for row in shown(vhost) if row[0] == "deliver"] == [("deliver", [1, 2], [3, 5])]


def test_redeliveries_are_a_row_of_their_own(vhost: VHost, connection: Peer) -> None:
    consumer = None
    for message, redelivered in zip(numbered(vhost, connection, 3), (False, True, False), strict=True):
        consumer = consumer or CollectingConsumer(vhost.queues["q"])
        trace_of(vhost).delivered_to(consumer, message, redelivered)
    deliveries = [(row.numbers, row.place["redelivered"]) for row in rows(vhost) if row.event == "deliver"]
    assert deliveries == [([1], False), ([2], True), ([3], False)]


def test_a_turn_ends_all_runs_and_has_one_time(vhost: VHost, connection: Peer) -> None:
    messages = numbered(vhost, connection, 4)
    consumer, trace = CollectingConsumer(vhost.queues["q"]), trace_of(vhost)
    for message in messages:
        trace.delivered_to(consumer, message, False)
        trace.acked_by(consumer, message)
        if message is messages[1]:
            vhost.broker.end_turn()
    found = [row for row in rows(vhost) if row.event in ("deliver", "ack")]
    assert [row.numbers for row in found] == [[1, 2], [1, 2], [3, 4], [3, 4]]
    first, second, third, fourth = (row.time_us for row in found)
    assert first == second < third == fourth


def test_a_run_ends_with_its_record(vhost: VHost, connection: Peer) -> None:
    first, second = numbered(vhost, connection, 2)
    consumer, trace = CollectingConsumer(vhost.queues["q"]), trace_of(vhost)
    trace.delivered_to(consumer, first, False)
    records(vhost)
    trace.delivered_to(consumer, second, False)
    assert shown(vhost) == [("deliver", [1], [4]), ("deliver", [2], [4])]


def test_a_run_ends_with_its_recorder(vhost: VHost, connection: Peer) -> None:
    first, second = numbered(vhost, connection, 2)
    consumer = CollectingConsumer(vhost.queues["q"])
    trace_of(vhost).delivered_to(consumer, first, False)
    record(vhost)
    trace_of(vhost).delivered_to(consumer, second, False)
    assert shown(vhost) == [("deliver", [1], [4]), ("deliver", [2], [4])]


@pytest.mark.parametrize("other_is_open", [False, True])
def test_no_event_of_a_message_precedes_that_of_a_copy(vhost: VHost, connection: Peer, other_is_open: bool) -> None:
    first, second, third = numbered(vhost, connection, 3)
    one, other = (CollectingConsumer(vhost.queues["q"], tag=tag) for tag in ("one", "other"))
    trace = trace_of(vhost)
    trace.delivered_to(one, first, False)
    if other_is_open:
        trace.delivered_to(other, second, False)
    trace.delivered_to(other, SpecialMessage.of(third), False)
    trace.delivered_to(one, third, False)
    deliveries = [numbers for _, numbers, _ in shown(vhost)]
    assert deliveries == [[1], *[[2]] * other_is_open, [3], [3]]


def test_no_event_of_a_message_precedes_an_earlier_one(vhost: VHost, connection: Peer) -> None:
    first, second = numbered(vhost, connection, 2)
    one, other = (CollectingConsumer(vhost.queues["q"], tag=tag) for tag in ("one", "other"))
    trace = trace_of(vhost)
    trace.delivered_to(one, first, False)
    trace.nacked(vhost.queues["q"], second, True, connection, 1)
    # Its nack is behind the first row, and its delivery behind the first ack.
    trace.acked_by(other, first)
    trace.delivered_to(one, second, False)
    trace.acked_by(other, second)
    assert [(event, numbers) for event, numbers, _ in shown(vhost)] == [
        ("deliver", [1]),
        ("nack", [2]),
        ("ack", [1]),
        ("deliver", [2]),
        ("ack", [2]),
    ]


def test_confirms_of_one_ack_are_a_row(vhost: VHost, connection: Peer) -> None:
    first, second, third, fourth, fifth = numbered(vhost, connection, 5)
    trace_of(vhost).confirmed_all(connection, 1, {5: first, 6: second, 8: third, 9: fifth, 10: fourth})
    assert shown(vhost) == [("confirm", [1, 2, 3, 5, 4], [5, 6, 8, 9, 10])]
