from __future__ import annotations

import pytest
from pamqp import commands

from amqp_broker.broker.lab.advice import PLACES_MAX
from tests.management.asking import Desk


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    peer = desk.lab.connect()
    peer.call(commands.Queue.Declare(queue="orders", durable=True))
    peer.call(commands.Basic.Consume(queue="orders"))
    return desk


def test_advice_has_its_place_and_remedy(desk: Desk) -> None:
    status, [told] = desk.get("/_broker/advice")
    assert status == 200
    assert "prefetch" in told.pop("sentence")
    assert "basic.qos" in told.pop("remedy")
    assert told.pop("connection").endswith(":5672")
    assert told.pop("first_seen_ms") == told.pop("last_seen_ms") == desk.lab.now
    place = {"vhost": "/", "user": "guest", "queue": "orders", "channel": 1}
    assert told == {"habit": "unlimited-prefetch", "link": "docs/habits.md#unlimited-prefetch", "count": 1, **place}


def test_a_request_finds_habits_that_have_no_event(desk: Desk) -> None:
    desk.lab.connect().publish("ordrs", b"m")
    habits = [told["habit"] for told in desk.get("/_broker/advice")[1]]
    assert habits == ["unlimited-prefetch", "unroutable"]


def test_advice_is_listed_and_cleared_by_vhost(desk: Desk) -> None:
    desk.lab.broker.add_vhost("other")
    assert desk.ask("GET", "/_broker/advice", query={"vhost": "other"}) == (200, [])
    assert len(desk.ask("GET", "/_broker/advice", query={"vhost": "/"})[1]) == 1
    assert desk.ask("DELETE", "/_broker/advice", query={"vhost": "other"})[0] == 204
    assert len(desk.get("/_broker/advice")[1]) == 1
    assert desk.ask("DELETE", "/_broker/advice")[0] == 204
    assert desk.get("/_broker/advice") == (200, [])


def test_advice_about_one_habit_is_listed(desk: Desk) -> None:
    desk.lab.connect().publish("ordrs", b"m")
    [told] = desk.ask("GET", "/_broker/advice", query={"habit": "unroutable"})[1]
    assert told["habit"] == "unroutable"
    status, refusal = desk.ask("GET", "/_broker/advice", query={"habit": "typo"})
    assert (status, refusal.partition(";")[0]) == (400, "no habit 'typo'")


def test_each_habit_has_one_row_with_its_count_and_newest_places(desk: Desk) -> None:
    peer = desk.lab.connect()
    for number in range(PLACES_MAX + 5):
        peer.call(commands.Queue.Declare(queue=f"q{number}"))
    status, rows = desk.get("/_broker/advice-habits")
    assert status == 200
    assert {row["habit"]: (row["count"], row["places"], row["beyond"]) for row in rows} == {
        "transient-queue": (PLACES_MAX + 5, PLACES_MAX, 5),
        "unlimited-prefetch": (1, 1, 0),
    }
    [flood] = [row for row in rows if row["habit"] == "transient-queue"]
    assert [example["queue"] for example in flood["examples"]] == [f"q{PLACES_MAX - at}" for at in (1, 2, 3)]
    desk.lab.broker.add_vhost("other")
    assert desk.ask("GET", "/_broker/advice-habits", query={"vhost": "other"}) == (200, [])


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_missing_vhost_is_not_found(desk: Desk, method: str) -> None:
    assert desk.ask(method, "/_broker/advice", query={"vhost": "typo"})[0] == 404
    assert len(desk.get("/_broker/advice")[1]) == 1


def test_advice_requires_an_administrator(desk: Desk) -> None:
    desk.be("monitoring")
    assert desk.get("/_broker/advice")[0] == 401
    assert desk.ask("DELETE", "/_broker/advice")[0] == 401
