from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from tests.management.asking import NOW, Desk
from tests.peer import Peer


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.lab.now = NOW
    desk.node.rates.start()
    return desk


def wait(desk: Desk, seconds: int) -> None:
    desk.lab.advance(1000 * seconds)
    desk.broker.now = desk.lab.now


def consumer(desk: Desk, prefetch: int, tag: str) -> Peer:
    peer = desk.lab.connect()
    peer.call(commands.Basic.Qos(prefetch_count=prefetch))
    peer.consume("q", tag)
    return peer


def filled(desk: Desk, count: int) -> Peer:
    peer = desk.lab.connect()
    peer.declare("q")
    for _ in range(count):
        peer.publish("q")
    return peer


def held(desk: Desk) -> dict[str, Any]:
    status, answer = desk.get("/_broker/queues/%2F/q/consumers")
    assert status == 200, answer
    assert isinstance(answer, dict)
    return answer


def test_each_consumer_has_what_it_holds_the_most_first(desk: Desk) -> None:
    filled(desk, 10)
    few, many = consumer(desk, 2, "few"), consumer(desk, 5, "many")
    many.send(commands.Basic.Ack(1))
    rows = held(desk)["consumers"]
    assert [(row["consumer_tag"], row["unacked"], row["acked"], row["delivered"]) for row in rows] == [
        ("many", 5, 1, 6),
        ("few", 2, 0, 2),
    ]
    assert rows[1] == {
        "consumer_tag": "few",
        "connection": few.session.name,
        "connection_name": None,
        "channel": 1,
        "user": "guest",
        "ack_required": True,
        "activity_status": "up",
        "prefetch_count": 2,
        "unacked": 2,
        "oldest_unacked_ms": desk.broker.real_now(),
        "delivered": 2,
        "delivered_details": {"rate": 0.0},
        "redelivered": 0,
        "acked": 0,
        "acked_details": {"rate": 0.0},
    }


def test_the_oldest_unacked_message_has_the_time_of_its_delivery(desk: Desk) -> None:
    publisher = filled(desk, 1)
    peer = consumer(desk, 0, "c")
    wait(desk, 60)
    publisher.publish("q")
    wait(desk, 30)
    [row] = held(desk)["consumers"]
    assert desk.broker.real_now() - row["oldest_unacked_ms"] == pytest.approx(90_000, abs=5000)
    peer.send(commands.Basic.Ack(1))
    [row] = held(desk)["consumers"]
    assert desk.broker.real_now() - row["oldest_unacked_ms"] == pytest.approx(30_000, abs=5000)
    peer.send(commands.Basic.Ack(2))
    assert held(desk)["consumers"][0]["oldest_unacked_ms"] is None


def test_consumers_of_one_channel_have_their_own_oldest_message(desk: Desk) -> None:
    publisher = filled(desk, 1)
    peer = consumer(desk, 1, "first")
    wait(desk, 60)
    peer.deliveries()
    peer.consume("q", "second")
    publisher.publish("q")
    wait(desk, 30)
    ages = {row["consumer_tag"]: desk.broker.real_now() - row["oldest_unacked_ms"] for row in held(desk)["consumers"]}
    assert ages == {"first": pytest.approx(90_000, abs=5000), "second": pytest.approx(30_000, abs=5000)}


def test_the_oldest_ready_message_has_the_time_of_its_arrival(desk: Desk) -> None:
    publisher = filled(desk, 1)
    arrived_ms = desk.broker.real_now()
    wait(desk, 60)
    publisher.publish("q")
    wait(desk, 30)
    assert held(desk)["oldest_ready_ms"] == pytest.approx(arrived_ms, abs=5000)
    publisher.get("q")
    assert held(desk)["oldest_ready_ms"] == pytest.approx(arrived_ms + 60_000, abs=5000)
    publisher.get("q")
    assert held(desk)["oldest_ready_ms"] is None


def test_messages_that_were_got_are_held_elsewhere(desk: Desk) -> None:
    peer = filled(desk, 3)
    assert peer.get("q", no_ack=False)
    consumer(desk, 1, "c")
    assert held(desk)["unacked_elsewhere"] == 1


def test_a_user_without_the_tag_monitoring_sees_the_own_consumers(desk: Desk) -> None:
    filled(desk, 3)
    consumer(desk, 1, "c")
    desk.be("management", configure="", write="", read=".*")
    assert held(desk)["consumers"] == []


def test_an_unknown_queue_is_not_found(desk: Desk) -> None:
    assert desk.get("/_broker/queues/%2F/none/consumers")[0] == 404


def test_the_rates_of_a_consumer_are_those_of_the_charts(desk: Desk) -> None:
    peer = filled(desk, 100)
    quick = consumer(desk, 10, "quick")
    for number in range(1, 13):
        quick.send(commands.Basic.Ack(2 * number, multiple=True))
        wait(desk, 1)
    query = {"msg_rates_age": "1", "msg_rates_incr": "1"}
    _, answer = desk.get("/_broker/queues/%2F/q/consumers", **query)
    [row] = answer["consumers"]
    _, queue = desk.get("/api/queues/%2F/q", **query)

    def growth(details: dict[str, Any]) -> int:
        last, before = details["samples"]
        return int(last["sample"] - before["sample"])

    assert growth(row["acked_details"]) == growth(queue["message_stats"]["ack_details"]) == 2
    assert row["delivered_details"]["rate"] == queue["message_stats"]["deliver_details"]["rate"] == 2.0
    peer.disconnect()
