from __future__ import annotations

from typing import Any

import pytest
from pamqp.commands import Basic, Exchange, Queue
from pamqp.common import FieldTable

from amqp_broker.management.api.topology import BUSY_MS, FOLDS_MAX, QUEUES_MAX, REST
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
    # The others are folded by the exchanges that lead to them.
    assert [(fold["sources"], fold["queues"]) for fold in answer["folds"]] == [(["in"], 1), (["side"], 1), ([], 1)]
    assert ways_of_folds(answer) == {
        (("exchange", "in"), ("fold", "in")): 0,
        (("exchange", "side"), ("fold", "side")): 0,
        (("fold", "in"), ("exchange", "dead")): 0,
        (("fold", ""), ("fold", "in")): 0,
    }


def ways_of_folds(answer: dict[str, Any]) -> dict[tuple[tuple[str, str], tuple[str, str]], int]:
    """Return the messages of the ways from and to folds, which have the names of their sources here."""
    names = {
        fold["name"]: ",".join(fold["sources"] or ["rest"]) if fold["sources"] != [] else "" for fold in answer["folds"]
    }

    def end(way: dict[str, Any], of: str) -> tuple[str, str]:
        return way[f"{of}_kind"], names[way[of]] if way[f"{of}_kind"] == "fold" else way[of]

    ways = {(end(way, "source"), end(way, "destination")): way["messages"] for way in answer["ways"]}
    return {way: count for way, count in ways.items() if "fold" in (way[0][0], way[1][0])}


def bound(peer: Peer, name: str, exchange: str = "side") -> None:
    peer.call(Queue.Declare(queue=name, durable=True))
    peer.call(Queue.Bind(queue=name, exchange=exchange, routing_key=name))


def test_busy_full_and_bound_queues_come_before_others(desk: Desk, peer: Peer) -> None:
    for number in range(QUEUES_MAX):
        peer.call(Queue.Declare(queue=f"idle{number}", durable=True))
        # Busy a long time ago.
        peer.publish(f"idle{number}", b"x")
        peer.get(f"idle{number}")
    # The samples of all, and a time in which nothing changes.
    desk.node.rates.start()
    desk.lab.advance(5_000 + BUSY_MS)
    desk.broker.now = desk.lab.now
    bound(peer, "bound")
    for name in ("full", "busy"):
        peer.call(Queue.Declare(queue=name, durable=True))
        peer.publish(name, b"x")
    peer.get("busy")
    answer = asked(desk)
    assert [queue["name"] for queue in answer["queues"]][:2] == ["full", "busy"]
    assert {"bound", "orders", "audit"} <= {queue["name"] for queue in answer["queues"]}
    [fold] = answer["folds"]
    # Five are not idle, and "retry" is not bound.
    assert (fold["sources"], fold["queues"]) == ([], 6)


def test_a_fold_has_the_sums_of_its_queues_and_the_ways_to_them(desk: Desk, peer: Peer) -> None:
    for number in range(QUEUES_MAX):
        bound(peer, f"a{number}", "in")
        for _ in range(5):
            peer.publish(f"a{number}", b"x")
    for number in range(100):
        bound(peer, f"few{number:02}")
    peer.publish("", b"x", exchange="side")
    peer.consume("few99")
    peer.publish("few98", b"x")
    answer = asked(desk)
    fold = answer["folds"][0]
    assert {name: value for name, value in fold.items() if name not in ("name", "members")} == {
        "sources": ["side"],
        "queues": 101,
        "ready": 101,
        "unacked": 1,
        "consumers": 1,
        "delivered": 1,
    }
    [way] = [way for way in answer["ways"] if (way["source"], way["destination"]) == ("side", fold["name"])]
    assert (way["messages"], way["more_keys"]) == (101, 98)
    [direct] = [way for way in answer["ways"] if (way["source"], way["destination"]) == ("", fold["name"])]
    assert (direct["messages"], direct["keys"]) == (1, [])
    # Only while the same queues are in it are its counts compared.
    assert asked(desk)["folds"][0] == fold
    bound(desk.lab.connect(), "few100")
    assert asked(desk)["folds"][0]["members"] != fold["members"]


def test_dead_letters_to_a_folded_queue_take_a_way_to_its_fold(desk: Desk, peer: Peer) -> None:
    peer.call(Queue.Declare(queue="zz", durable=True))
    letters: FieldTable = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "zz"}
    for number in range(QUEUES_MAX):
        peer.call(Queue.Declare(queue=f"work{number}", durable=True, arguments=letters))
        peer.publish(f"work{number}", b"x")
    assert (("queue", "work0"), ("fold", "")) in ways_of_folds(asked(desk))


def test_many_groups_are_folded_into_the_largest_and_the_rest(desk: Desk, peer: Peer) -> None:
    for number in range(QUEUES_MAX):
        peer.call(Queue.Declare(queue=f"q{number}", durable=True))
        for _ in range(5):
            peer.publish(f"q{number}", b"x")
    for number in range(40):
        peer.call(Exchange.Declare(exchange=f"e{number}", exchange_type="fanout"))
        for other in range(2):
            bound(peer, f"e{number}.{other}", f"e{number}")
    folds = asked(desk)["folds"]
    assert [fold["queues"] for fold in folds] == [2] * (FOLDS_MAX - 1) + [2 * (41 - FOLDS_MAX) + 3]
    assert (folds[-1]["sources"], folds[-1]["name"]) == (None, REST)
    # A mixture of queues has no ways: messages of one would be counted on those to another.
    assert not any(way["destination"] == REST for way in asked(desk)["ways"])


def test_bindings_in_a_circle_end(desk: Desk, peer: Peer) -> None:
    peer.call(Exchange.Bind(source="side", destination="in"))
    peer.publish("a", b"x", exchange="side")
    assert messages(asked(desk))["side", "audit"] == 1
