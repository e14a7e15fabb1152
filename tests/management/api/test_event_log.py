from __future__ import annotations

import json
from typing import Any

import pytest
from pamqp.commands import Basic

from tests.management.asking import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk(event_log=True)


def publish(desk: Desk, *bodies: bytes) -> None:
    peer = desk.lab.connect()
    peer.declare("q")
    for body in bodies:
        peer.publish("q", body, headers={"n": 1})


def test_messages_are_listed_with_their_bodies_and_the_next_page(desk: Desk) -> None:
    publish(desk, b"1", b"\xff")
    status, answer = desk.get("/_broker/messages", queue="q")
    first, second = answer["messages"]
    assert (status, answer["count"], answer["next"], answer["skipped"]) == (200, 2, 2, 0)
    assert (first["event"], first["message_number"], first["routing_key"]) == ("publish", 1, "q")
    assert (first["routed_queues"], first["payload"], first["payload_bytes"]) == (["q"], "1", 1)
    assert first["properties"] == {"headers": {"n": 1}}
    assert (second["payload"], second["payload_encoding"]) == ("/w==", "base64")


def test_the_count_is_exact_and_the_list_is_limited(desk: Desk) -> None:
    publish(desk, *[b"abc"] * 5)
    answer = desk.get("/_broker/messages", limit="2", truncate="1")[1]
    assert (answer["count"], [message["payload"] for message in answer["messages"]]) == (5, ["a", "a"])
    following = desk.get("/_broker/messages", since=str(answer["next"]))[1]
    assert [message["sequence"] for message in following["messages"]] == [3, 4, 5]


def test_each_filter_excludes_other_events(desk: Desk) -> None:
    publish(desk, b'{"id": 1}', b'{"id": 2}')
    filters = {
        "exchange": "amq.default",
        "routing_key": "q*",
        "queue": "q",
        "event": "publish",
        "body": '{"id": 2}',
        "body_json": '{"id": 2}',
        "body_regex": "2",
        "headers": '{"n": 1}',
        "properties": '{"headers": {"n": 1}}',
        "vhost": "/",
        "since": "1",
    }
    assert desk.get("/_broker/messages", **filters)[1]["count"] == 1
    for name, other in {
        **dict.fromkeys(("exchange", "routing_key", "queue", "body", "body_regex"), "none"),
        "event": "ack",
        "body_json": '{"id": 3}',
        "headers": '{"n": 2}',
        "properties": '{"type": "t"}',
        "since": "2",
    }.items():
        assert desk.get("/_broker/messages", **{**filters, name: other})[1]["count"] == 0


def test_binary_bodies_are_matched_in_base64(desk: Desk) -> None:
    publish(desk, b"\xff", b"x")
    assert desk.get("/_broker/messages", body_base64="/w==")[1]["count"] == 1


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"body": "x", "body_base64": "eA=="}, "body and body_base64 exclude each other"),
        ({"event": "acked"}, "event 'acked' is not one of"),
        ({"body_json": "{"}, "body_json is not JSON"),
        ({"headers": "[]"}, "headers must be a JSON object"),
        ({"body_base64": "!"}, "body_base64 is not base64"),
        ({"body_regex": "("}, "is invalid"),
        ({"since": "-1"}, "since must be a non-negative whole number"),
        ({"count": "x"}, "count must be a non-negative whole number"),
        ({"count": "10001"}, "count must not exceed 10000"),
        ({"timeout_s": "x"}, "timeout_s must be a number from 0 to 600"),
        ({"timeout_s": "nan"}, "timeout_s must be"),
        ({"timeout_s": "601"}, "timeout_s must be"),
        ({"count": "1", "none": "true"}, "count and none exclude each other"),
        ({"quue": "q"}, "unknown parameters: quue"),
    ],
)
def test_an_invalid_query_is_refused_with_a_reason(desk: Desk, query: dict[str, str], reason: str) -> None:
    status, told = desk.get("/_broker/messages", **query)
    assert status == 400
    assert reason in told


def test_a_vhost_without_an_event_log_is_refused(desk: Desk) -> None:
    desk.ask("DELETE", "/_broker/event-log/%2F")
    status, reason = desk.get("/_broker/messages")
    assert status == 400
    assert "has no event log: start the broker with --event-log" in reason
    assert desk.get("/_broker/messages", vhost="none")[0] == 404


def test_a_wait_returns_with_enough_messages_and_is_a_conflict_with_too_few(desk: Desk) -> None:
    publish(desk, b"1", b"2")
    assert desk.get("/_broker/messages", count="2", timeout_s="5")[0] == 200
    status, reason = desk.get("/_broker/messages", count="3", timeout_s="5", body="1")
    assert status == 409
    assert reason.startswith("3 wanted, 1 found: event publish, body '1'")
    assert "body is '2', not '1'" in reason


def test_a_wait_for_no_messages_is_a_conflict_if_one_matches(desk: Desk) -> None:
    publish(desk, b"1")
    assert desk.get("/_broker/messages", none="true", event="return", timeout_s="1")[0] == 200
    status, reason = desk.get("/_broker/messages", none="true")
    assert (status, reason.splitlines()[0]) == (409, "none wanted, 1 found: event publish")


def test_all_events_of_a_message_are_listed(desk: Desk) -> None:
    publish(desk, b"1")
    peer = desk.lab.connect()
    peer.get("q", no_ack=False)
    peer.send(Basic.Ack(delivery_tag=1))
    status, told = desk.get("/_broker/messages/1")
    assert (status, told["message_number"], told["vhost"]) == (200, 1, "/")
    assert [event["event"] for event in told["events"]] == ["publish", "deliver", "ack"]
    assert desk.get("/_broker/messages/2") == (404, "no message 2 in the event logs")
    assert desk.get("/_broker/messages/x")[0] == 400


def test_an_event_log_is_switched_on_and_off(desk: Desk) -> None:
    assert desk.ask("DELETE", "/_broker/event-log") == (204, None)
    assert desk.get("/_broker/event-log") == (200, [])
    assert desk.ask("PUT", "/_broker/event-log/%2F", {"events_max": 10}) == (204, None)
    expected = {"vhost": "/", "events": 0, "skipped": 0, "events_max": 10, "bytes_max": 67108864}
    expected |= {"began_at_us": desk.broker.now * 1000, "published_before": 0}
    assert desk.get("/_broker/event-log") == (200, [expected])
    assert desk.ask("PUT", "/_broker/event-log") == (204, None)
    assert desk.get("/_broker/event-log") == (200, [expected])


@pytest.mark.parametrize("given", [{"events_max": 0}, {"bytes_max": -1}, {"events_max": "x"}, []])
def test_invalid_limits_are_refused_and_change_nothing(desk: Desk, given: Any) -> None:
    before = desk.get("/_broker/event-log")
    assert desk.ask("PUT", "/_broker/event-log/%2F", json.dumps(given).encode())[0] == 400
    assert desk.get("/_broker/event-log") == before


def test_an_event_log_is_cleared(desk: Desk) -> None:
    publish(desk, b"1")
    assert desk.ask("DELETE", "/_broker/messages") == (204, None)
    assert desk.get("/_broker/messages")[1]["count"] == 0
    publish(desk, b"1")
    assert desk.ask("DELETE", "/_broker/messages", query={"vhost": "/"}) == (204, None)
    assert desk.get("/_broker/messages")[1]["count"] == 0


def test_a_reset_clears_the_event_log(desk: Desk) -> None:
    publish(desk, b"1")
    desk.ask("POST", "/_broker/reset", query={"vhost": "/"})
    assert desk.get("/_broker/messages", event="any")[1]["count"] == 0


def test_a_busy_queue_is_a_conflict(desk: Desk) -> None:
    assert desk.get("/_broker/idle") == (200, {"is_idle": True})
    publish(desk, b"1")
    assert desk.get("/_broker/idle", timeout_s="1") == (409, "queue 'q' has 1 ready and 0 unacked")
    assert desk.get("/_broker/idle", vhost="none") == (404, "no vhost 'none'")
    assert desk.get("/_broker/idle", queue="none") == (404, "no queue 'none' in vhost '/'")


def test_messages_require_an_administrator(desk: Desk) -> None:
    desk.be("monitoring")
    assert desk.get("/_broker/messages")[0] == 401
