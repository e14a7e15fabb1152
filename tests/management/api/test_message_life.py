from __future__ import annotations

from typing import Any

import pytest
from pamqp.commands import Basic, Exchange, Queue
from pamqp.common import FieldTable

from amqp_broker.management.api.message_life import MESSAGES_MAX
from tests.management.asking import Desk
from tests.peer import Peer


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.broker.event_logs.start(desk.broker.vhosts["/"])
    return desk


@pytest.fixture
def peer(desk: Desk) -> Peer:
    peer = desk.lab.connect()
    peer.call(Exchange.Declare(exchange="orders", exchange_type="topic"))
    arguments: FieldTable = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "failed", "x-max-length": 2}
    peer.call(Queue.Declare(queue="paid", durable=True, arguments=arguments))
    for name in ("failed", "other"):
        peer.call(Queue.Declare(queue=name, durable=True))
    peer.call(Queue.Bind(queue="paid", exchange="orders", routing_key="order.paid"))
    return peer


def lives(desk: Desk, queue: str, search: str = "") -> list[dict[str, Any]]:
    status, answer = desk.ask("GET", f"/_broker/queues/%2F/{queue}/lives", query={"search": search})
    assert (status, answer["has_log"]) == (200, True)
    rows: list[dict[str, Any]] = answer["messages"]
    return rows


def told(desk: Desk, queue: str, search: str) -> tuple[str, str]:
    [row] = lives(desk, queue, search)
    return row["state"], " ".join(row["sentences"])


def test_a_message_that_is_here_is_said_to_be_ready_or_unacked(desk: Desk, peer: Peer) -> None:
    peer.publish("order.paid", b"one", exchange="orders", message_id="m-1")
    assert told(desk, "paid", "m-1") == ("ready", "It is here, ready.")
    peer.get("paid", no_ack=False)
    state, why = told(desk, "paid", "m-1")
    assert state == "unacked"
    assert why.startswith("It is here, unacked. It was delivered to 127.0.0.1:")
    peer.send(Basic.Nack(delivery_tag=1, requeue=True))
    state, why = told(desk, "paid", "m-1")
    assert (state, why.endswith("channel 1, and came back.")) == ("ready", True)


def test_a_message_that_has_left_has_a_reason(desk: Desk, peer: Peer) -> None:
    for number, body in enumerate((b"acked", b"rejected"), 1):
        peer.publish("order.paid", body, exchange="orders")
        peer.get("paid", no_ack=False)
        peer.send(Basic.Ack(delivery_tag=1) if number == 1 else Basic.Reject(delivery_tag=2, requeue=False))
    state, why = told(desk, "paid", "acked")
    assert (state, why.startswith("It was here. It was acknowledged by 127.0.0.1:")) == ("gone", True)
    state, why = told(desk, "paid", "rejected")
    assert state == "gone"
    assert why.endswith("channel 1, without requeue. Its dead letter (rejected) went to 'failed'.")
    assert told(desk, "failed", "rejected") == ("ready", "It is here, ready.")
    # The dead letter belongs to the life of its origin.
    [row] = lives(desk, "failed")
    assert [event["event"] for event in row["events"]] == ["publish", "deliver", "nack", "dead_letter"]


def test_a_message_that_was_dropped_or_purged_is_explained(desk: Desk, peer: Peer) -> None:
    for body in (b"1st", b"2nd", b"3rd"):
        peer.publish("order.paid", body, exchange="orders")
    assert told(desk, "paid", "1st")[1] == (
        "It was here. The queue was full and dropped it. Its dead letter (maxlen) went to 'failed'."
    )
    peer.call(Queue.Purge(queue="paid"))
    assert told(desk, "paid", "3rd") == ("gone", "It was here. The queue was purged.")


def test_a_message_that_never_came_is_shown_its_way_and_the_bindings(desk: Desk, peer: Peer) -> None:
    peer.publish("order.payed", b"typo", exchange="orders", mandatory=True)
    assert told(desk, "paid", "typo") == (
        "elsewhere",
        "It never came here. It was published to the exchange 'orders' with routing key 'order.payed', which led to no "
        "queue. It was returned to its publisher. This queue is bound to the exchange 'orders' with 'order.paid'.",
    )
    assert told(desk, "other", "typo")[1].endswith("This queue is not bound to the exchange 'orders'.")
    peer.publish("order.paid", b"elsewhere", exchange="orders")
    assert "which led to 'paid'." in told(desk, "other", "elsewhere")[1]
    # Without a search, a queue shows only messages that came to it.
    assert lives(desk, "other") == []


def test_messages_are_found_by_number_key_and_text(desk: Desk, peer: Peer) -> None:
    peer.publish("order.paid", b"body of it", exchange="orders", correlation_id="c-9")
    peer.publish("paid", b"another")
    [number] = [row["message_number"] for row in lives(desk, "paid", "body of")]
    for search in (f"#{number}", str(number), "c-9", "order.pa"):
        assert [row["payload"] for row in lives(desk, "paid", search)] == ["body of it"]
    assert lives(desk, "paid", "no such thing") == []
    assert [row["payload"] for row in lives(desk, "paid")] == ["another", "body of it"]


def test_without_a_log_nothing_is_known(desk: Desk) -> None:
    desk.broker.event_logs.stop_all()
    desk.lab.connect().declare("q")
    answer: dict[str, Any] = {"has_log": False, "skipped": 0, "since_ms": None, "published_before": 0, "messages": []}
    assert desk.ask("GET", "/_broker/queues/%2F/q/lives") == (200, answer)
    assert desk.ask("GET", "/_broker/queues/%2F/missing/lives")[0] == 404
    desk.be("monitoring")
    assert desk.ask("GET", "/_broker/queues/%2F/q/lives")[0] == 401


def test_the_messages_that_were_published_before_the_log_are_counted(desk: Desk) -> None:
    desk.broker.event_logs.stop_all()
    peer = desk.lab.connect()
    peer.declare("q")
    peer.publish("q", b"early")
    desk.broker.event_logs.start(desk.lab.vhost)
    _, answer = desk.ask("GET", "/_broker/queues/%2F/q/lives", query={"search": "early"})
    assert (answer["messages"], answer["published_before"]) == ([], 1)
    _, found = desk.ask("GET", "/_broker/messages", query={"none": "true"})
    assert (found["published_before"], found["began_at_us"]) == (1, desk.broker.now * 1000)


def test_a_test_is_made_of_one_message_or_of_those_that_are_found(desk: Desk, peer: Peer) -> None:
    for body in (b"first", b"second"):
        peer.publish("order.paid", body, exchange="orders")
    [second, first] = lives(desk, "paid")
    status, answer = desk.ask("GET", f"/_broker/messages/{second['message_number']}/pytest")
    assert status == 200
    assert answer["text"].count("basic_publish") == 1
    assert "b'second'" in answer["text"]
    path = "/_broker/queues/%2F/paid/pytest"
    text = desk.ask("GET", path)[1]["text"]
    assert text.index("b'first'") < text.index("b'second'")
    assert f"def test_messages_{first['message_number']}_to_{second['message_number']}(" in text
    assert desk.ask("GET", path, query={"search": "second"})[1]["text"].count("basic_publish") == 1
    assert desk.ask("GET", path, query={"search": "no such"}) == (
        400,
        "the event log has no publish of this message",
    )
    assert desk.ask("GET", "/_broker/messages/999999/pytest")[0] == 404
    desk.broker.event_logs.stop_all()
    assert desk.ask("GET", path)[0] == 400
    desk.be("monitoring")
    assert desk.ask("GET", path)[0] == 401


def test_the_message_with_just_this_id_comes_first_however_old_it_is(desk: Desk, peer: Peer) -> None:
    peer.publish("order.paid", b"the one", exchange="orders", message_id="m-1")
    for number in range(10, 10 + MESSAGES_MAX):
        peer.publish("order.paid", b"", exchange="orders", message_id=f"m-{number}")
    ids = [row["properties"]["message_id"] for row in lives(desk, "paid", "m-1")]
    assert ids == ["m-1", *(f"m-{number}" for number in range(19, 9, -1))]
    assert len(lives(desk, "paid", "m-")) == MESSAGES_MAX
    [first, *_] = lives(desk, "paid", "#1")
    assert first["message_number"] == 1


def test_the_answer_says_how_far_back_the_log_reaches(desk: Desk, peer: Peer) -> None:
    path = "/_broker/queues/%2F/paid/lives"
    assert desk.get(path)[1]["since_ms"] is None
    peer.publish("order.paid", b"", exchange="orders")
    since_ms = desk.get(path)[1]["since_ms"]
    assert abs(since_ms - desk.broker.now) < 1000
    desk.lab.advance(60_000)
    peer.publish("order.paid", b"", exchange="orders")
    assert desk.get(path)[1]["since_ms"] == since_ms
