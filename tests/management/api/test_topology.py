from __future__ import annotations

from typing import Any

import pytest
from pamqp.commands import Basic, Exchange, Queue
from pamqp.common import FieldTable

from amqp_broker.management.api.topology import QUEUES_MAX
from tests.management.asking import Desk
from tests.peer import Peer


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def peer(desk: Desk) -> Peer:
    peer = desk.lab.connect()
    for name in ("in", "side", "unused", "dead"):
        peer.call(Exchange.Declare(exchange=name, exchange_type="fanout"))
    letters: FieldTable = {"x-dead-letter-exchange": "dead"}
    back: FieldTable = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"}
    for name, given in (("orders", letters), ("audit", {}), ("retry", back)):
        peer.call(Queue.Declare(queue=name, durable=True, arguments=given))
    for key in "abcd":
        peer.call(Queue.Bind(queue="orders", exchange="in", routing_key=key))
    peer.call(Exchange.Bind(source="in", destination="side"))
    peer.call(Queue.Bind(queue="audit", exchange="side"))
    return peer


def asked(desk: Desk, name: str = "") -> dict[str, Any]:
    status, answer = desk.ask("GET", "/_broker/topology/%2F", query={"name": name})
    assert status == 200
    found: dict[str, Any] = answer
    return found


def messages(answer: dict[str, Any]) -> dict[tuple[str, str], int]:
    return {(way["source"], way["destination"]): way["messages"] for way in answer["ways"]}


def test_messages_are_counted_on_each_way_of_a_long_path(desk: Desk) -> None:
    peer = desk.lab.connect()
    for number in range(20):
        peer.call(Exchange.Declare(exchange=f"e{number}", exchange_type="fanout"))
        if number:
            peer.call(Exchange.Bind(source=f"e{number}", destination=f"e{number - 1}"))
    for queue in ("q", "other"):
        peer.declare(queue)
        peer.call(Queue.Bind(queue=queue, exchange="e0"))
    for exchange in ("e19", "e19", "e7"):
        peer.publish("", b"x", exchange=exchange)
    found = messages(asked(desk))
    assert found["e0", "q"] == found["e0", "other"] == 3
    # Each hop counts what both queues got.
    assert [found[f"e{number}", f"e{number - 1}"] for number in range(1, 20)] == [6] * 7 + [4] * 12


def test_messages_are_counted_on_their_way(desk: Desk, peer: Peer) -> None:
    for _ in range(3):
        peer.publish("a", b"x", exchange="in")
    peer.publish("orders", b"direct")
    peer.get("orders", no_ack=False)
    peer.send(Basic.Reject(delivery_tag=1, requeue=False))
    answer = asked(desk)
    assert messages(answer) == {
        ("in", "orders"): 3,
        ("in", "side"): 3,
        ("side", "audit"): 3,
        ("", "orders"): 1,
        ("orders", "dead"): 1,
        ("retry", "orders"): 0,
    }
    [orders] = [queue for queue in answer["queues"] if queue["name"] == "orders"]
    assert (orders["ready"], orders["unacked"], orders["delivered"]) == (3, 0, 1)
    [way] = [way for way in answer["ways"] if (way["source"], way["destination"]) == ("in", "orders")]
    assert (way["keys"], way["more_keys"], way["reason"]) == (["a", "b", "c"], 1, "binding")


def test_objects_without_messages_are_drawn_but_for_predeclared_ones(desk: Desk, peer: Peer) -> None:
    answer = asked(desk)
    assert {exchange["name"] for exchange in answer["exchanges"]} == {"in", "side", "dead", "unused"}
    assert answer["totals"]["queues"] == answer["totals"]["matching_queues"] == 3


def test_a_name_selects_queues_and_those_of_an_exchange(desk: Desk, peer: Peer) -> None:
    assert [queue["name"] for queue in asked(desk, "retr")["queues"]] == ["retry"]
    answer = asked(desk, "side")
    assert [queue["name"] for queue in answer["queues"]] == ["audit"]
    assert {exchange["name"] for exchange in answer["exchanges"]} == {"in", "side"}
    assert asked(desk, "no such")["queues"] == asked(desk, "no such")["exchanges"] == []


def test_only_the_busiest_queues_are_drawn(desk: Desk, peer: Peer) -> None:
    for number in range(QUEUES_MAX):
        peer.call(Queue.Declare(queue=f"q{number}", durable=True))
        peer.publish(f"q{number}", b"x")
        peer.publish(f"q{number}", b"x")
    answer = asked(desk)
    drawn = {queue["name"] for queue in answer["queues"]}
    assert (len(drawn), drawn & {"retry", "orders"}) == (QUEUES_MAX, set())
    assert answer["totals"]["matching_queues"] == QUEUES_MAX + 3
    # Ways to other queues are not drawn.
    assert {source for source, _ in messages(answer)} == {""}


def test_bindings_in_a_circle_end(desk: Desk, peer: Peer) -> None:
    peer.call(Exchange.Bind(source="side", destination="in"))
    peer.publish("a", b"x", exchange="side")
    assert messages(asked(desk))["side", "audit"] == 1
