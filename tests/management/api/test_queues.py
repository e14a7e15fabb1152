from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from tests.management.asking import Desk

Q = "/api/queues/%2F/"


def desk_with(*names: str, **settings: Any) -> Desk:
    desk = Desk(**settings)
    for name in names:
        assert desk.ask("PUT", Q + name) == (201, None)
    return desk


def test_a_declared_queue_is_listed_at_once() -> None:
    desk = desk_with("q")
    assert desk.ask("PUT", Q + "q") == (204, None)
    status, queue = desk.get(Q + "q")
    assert status == 200
    assert {key: queue[key] for key in ("name", "vhost", "type", "durable", "messages", "consumers", "state")} == {
        "name": "q",
        "vhost": "/",
        "type": "classic",
        "durable": False,
        "messages": 0,
        "consumers": 0,
        "state": "running",
    }


def test_counts_of_ready_and_unacked_messages_are_current() -> None:
    desk = desk_with("q")
    peer = desk.lab.connect()
    peer.publish("q", b"12345", delivery_mode=2, timestamp=None)
    peer.publish("q", b"123")
    peer.call(commands.Basic.Qos(prefetch_count=1))
    peer.call(commands.Basic.Consume(queue="q", consumer_tag="c"))
    queue = desk.get(Q + "q")[1]
    assert (queue["messages"], queue["messages_ready"], queue["messages_unacknowledged"]) == (2, 1, 1)
    assert (queue["message_bytes"], queue["message_bytes_ready"], queue["message_bytes_unacknowledged"]) == (8, 3, 5)
    assert (queue["message_bytes_persistent"], queue["messages_persistent"]) == (5, 1)
    assert queue["message_stats"]["publish"] == 2
    assert queue["message_stats"]["deliver_get"] == 1
    assert queue["consumer_details"][0]["consumer_tag"] == "c"
    assert queue["incoming"][0]["exchange"] == {"name": "", "vhost": "/"}
    assert queue["deliveries"][0]["stats"]["deliver"] == 1
    assert desk.get("/api/queues", disable_stats="true", enable_queue_totals="true")[1][0]["messages"] == 2
    assert desk.get("/api/queues", columns="messages_ready,name")[1] == [{"messages_ready": 1, "name": "q"}]


def test_the_timestamp_of_the_first_message_is_listed() -> None:
    from datetime import UTC, datetime

    desk = desk_with("q")
    desk.lab.connect().publish("q", timestamp=datetime.fromtimestamp(1_700_000_000, UTC))
    assert desk.get(Q + "q")[1]["head_message_timestamp"] == 1_700_000_000


@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_a_queue_of_each_type_is_listed_and_found(kind: str) -> None:
    desk = Desk()
    assert desk.ask("PUT", Q + "q", {"durable": True, "arguments": {"x-queue-type": kind}})[0] == 201
    assert desk.get(Q + "q")[1]["type"] == kind
    assert desk.get("/api/queues")[1][0]["type"] == kind
    assert desk.get(Q + "q", disable_stats="true")[1]["type"] == kind


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"auto_delete": True}, "inequivalent arg 'auto_delete' for queue 'q' in vhost '/': received 'true'"),
        ({"arguments": {"x-max-length": "a"}}, "inequivalent arg 'x-max-length' for queue 'q' in vhost '/': received"),
        ({"durable": "maybe"}, ["not_boolean", "maybe"]),
        ({"arguments": {"x": None}}, "null_not_allowed"),
        ({"node": "rabbit@nope"}, "Node rabbit@nope could not be contacted"),
        (b"{", "not_json"),
        (b'"{}"', "invalid payload: the request body JSON-decoded to a string."),
        (b"[" * 2000, "not_json"),
        (b"[" * 100_000, "the values are nested deeper than 100000 levels"),
        (b'{"arguments":{"a":"\\ud800"}}', "not_json"),
    ],
)
def test_a_mismatch_is_refused_in_rabbitmqs_words(body: Any, reason: Any) -> None:
    status, told = desk_with("q").ask("PUT", Q + "q", body)
    assert status == 400
    assert told == reason or told.startswith(reason)


@pytest.mark.parametrize("name", ["amq.x", "x" * 256])
def test_a_queue_with_an_invalid_name_is_refused(name: str) -> None:
    desk = Desk()
    assert desk.ask("PUT", Q + name)[0] in (400, 401)
    assert desk.get("/api/queues")[1] == []


def test_line_ends_are_stripped_from_names() -> None:
    assert desk_with("a%0D%0Ab").get(Q + "ab", columns="name")[1] == {"name": "ab"}


def test_a_name_of_any_octets_is_listed_and_found() -> None:
    desk = desk_with("%FF%00")
    assert desk.get(Q + "%FF%00", columns="name") == (200, {"name": "\ufffd\0"})
    assert desk.get("/api/queues", columns="name")[1] == [{"name": "\ufffd\0"}]
    assert desk.get("/api/bindings")[1][0]["properties_key"] == "%FF%00"
    assert desk.ask("DELETE", Q + "%FF%00") == (204, None)


def test_a_queue_in_use_or_with_messages_is_deleted_only_without_conditions() -> None:
    desk = desk_with("q")
    peer = desk.lab.connect()
    peer.publish("q")
    assert desk.ask("DELETE", Q + "q", query={"if-empty": "true"}) == (400, "queue 'q' in vhost '/' not empty")
    peer.call(commands.Basic.Consume(queue="q", no_ack=True))
    assert desk.ask("DELETE", Q + "q", query={"if-unused": "true"}) == (400, "queue 'q' in vhost '/' in use")
    assert desk.ask("DELETE", Q + "q") == (204, None)
    assert desk.ask("DELETE", Q + "q") == (404, "Not Found")


def test_an_exclusive_queue_belongs_to_its_connection() -> None:
    desk = Desk()
    desk.lab.connect().call(commands.Queue.Declare(queue="q", exclusive=True))
    queue = desk.get(Q + "q")[1]
    assert queue["exclusive"]
    assert queue["owner_pid_details"]["peer_host"] == "127.0.0.1"
    for method in ("PUT", "DELETE"):
        status, reason = desk.ask(method, Q + "q")
        assert status == 400
        assert reason.startswith("cannot obtain exclusive access to locked queue 'q' in vhost '/'")


def test_permissions_apply_as_over_amqp() -> None:
    desk = desk_with("q")
    desk.be("management", configure="^m", write="", read="")
    assert desk.ask("PUT", Q + "m") == (201, None)
    for method in ("PUT", "DELETE"):
        assert desk.ask(method, Q + "q") == (401, "Access refused.")


@pytest.mark.parametrize(("tag", "seen"), [("management", 401), ("monitoring", 200), ("administrator", 200)])
def test_a_vhost_without_permission_is_visible_only_with_monitoring(tag: str, seen: int) -> None:
    desk = desk_with("q")
    desk.be(tag)
    assert desk.get("/api/queues/%2F")[0] == desk.get(Q + "q")[0] == seen
    assert len(desk.get("/api/queues")[1]) == (seen == 200)
    assert desk.ask("PUT", Q + "n")[0] == 401
    assert desk.ask("DELETE", Q + "q")[0] == 401


@pytest.mark.parametrize("path", ["/api/queues/nope", "/api/queues/nope/q", Q + "nope"])
def test_a_missing_queue_is_not_found(path: str) -> None:
    assert Desk().get(path) == (404, "Not Found")


def test_a_queue_in_a_missing_vhost_is_refused() -> None:
    assert Desk().ask("PUT", "/api/queues/nope/q") == (404, "vhost_not_found")


def test_the_consumer_capacity_without_consumers_is_an_integer() -> None:
    desk = desk_with("q")
    assert repr(desk.get(Q + "q")[1]["consumer_capacity"]) == "0"
    peer = desk.lab.connect()
    peer.call(commands.Basic.Consume(queue="q"))
    assert repr(desk.get(Q + "q")[1]["consumer_capacity"]) == "1.0"


def test_a_quorum_queue_counts_a_consumer_for_each_pulled_message() -> None:
    desk = Desk()
    desk.ask("PUT", Q + "q", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
    peer = desk.lab.connect()
    peer.publish("q", b"1")
    peer.get("q", no_ack=False)
    peer.call(commands.Basic.Consume(queue="q", consumer_tag="c"))
    assert desk.get(Q + "q")[1]["consumers"] == 2
    peer.send(commands.Basic.Ack(delivery_tag=1))
    assert desk.get(Q + "q")[1]["consumers"] == 1


def test_actions_on_mirrors_ended_with_rabbitmq_4() -> None:
    desk = desk_with("q")
    assert desk.ask("POST", f"{Q}q/actions", {"action": "sync"}) == (400, ["unknown", "sync"])
    assert desk.ask("POST", f"{Q}none/actions", {"action": "sync"}) == (404, "queue_not_found")


def test_actions_on_mirrors_do_nothing() -> None:
    desk = desk_with("q", compat="3.13")
    assert desk.ask("POST", f"{Q}q/actions", {"action": "sync"})[0] == 204
    assert desk.ask("POST", f"{Q}q/actions", {"action": "x"}) == (400, ["unknown", "x"])
    assert desk.ask("POST", f"{Q}q/actions", {}) == (400, "[{key_missing,action}]")
    assert desk.ask("POST", f"{Q}none/actions", {"action": "sync"}) == (404, "Not Found")


def test_the_detailed_list_has_columns_that_are_not_set() -> None:
    desk = desk_with("q")
    (brief,), (detailed,) = desk.get("/api/queues")[1], desk.get("/api/queues/detailed")[1]
    assert detailed["exclusive_consumer_tag"] is None
    assert "garbage_collection" in detailed
    assert detailed.keys() - brief.keys() == {
        *("exclusive_consumer_tag", "garbage_collection", "head_message_timestamp", "operator_policy", "policy"),
        "single_active_consumer_tag",
    }


def test_delayed_messages_of_a_quorum_queue_are_counted_apart_from_ready_ones() -> None:
    desk = Desk(compat="4.3")
    arguments = {"x-queue-type": "quorum", "x-delayed-retry-type": "all", "x-delayed-retry-min": 5000}
    desk.ask("PUT", Q + "q", {"durable": True, "arguments": arguments})
    peer = desk.lab.connect()
    row = desk.get(Q + "q")[1]
    assert (row["delayed_retry"], row["messages_delayed"]) == ("all (min: 5000ms, max: 5000ms)", 0)
    assert "next_delayed_at" not in row
    for body in (b"12", b"3"):
        peer.publish("q", body)
    peer.send(commands.Basic.Get(queue="q"), commands.Basic.Reject(1, requeue=True))
    row = desk.get(Q + "q")[1]
    counted = ("messages", "messages_ready", "messages_delayed", "messages_persistent", "message_bytes_ready")
    assert [row[name] for name in counted] == [2, 1, 1, 2, 3 + 4]
    assert row["next_delayed_at"] == row["last_delayed_at"] == desk.lab.now + 5000
    assert desk.get("/api/overview")[1]["queue_totals"]["messages"] == 2


@pytest.mark.parametrize(("compat", "octets"), [("4.2", [4, 6, 10]), ("4.3", [10, 12, 22])])
def test_the_octets_of_a_quorum_queue_include_properties_since_4_3(compat: str, octets: list[int]) -> None:
    desk = Desk(compat=compat)
    desk.ask("PUT", Q + "q", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
    peer = desk.lab.connect()
    for body in (b"1234", b"123456"):
        peer.publish("q", body, app_id="app")
    # The headers with counts do not count.
    peer.send(commands.Basic.Get(queue="q"), commands.Basic.Reject(1, requeue=True), commands.Basic.Get(queue="q"))
    row = desk.get(Q + "q")[1]
    columns = ("message_bytes_unacknowledged", "message_bytes_ready", "message_bytes")
    assert [row[column] for column in columns] == octets
    assert row["message_bytes_persistent"] == row["message_bytes"]


@pytest.mark.parametrize(
    ("compat", "columns"),
    [
        ("3.13", {}),
        ("4.2", {"messages_ready_high": 1, "messages_ready_normal": 2}),
        ("4.3", {"messages_by_priority": {"2": 1, "4": 1, "9": 1}, "messages_active_priorities": 3}),
    ],
)
def test_messages_of_a_quorum_queue_are_counted_by_priority(compat: str, columns: dict[str, Any]) -> None:
    desk = Desk(compat=compat)
    desk.ask("PUT", Q + "q", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
    peer = desk.lab.connect()
    for priority in (None, 2, 9):
        peer.publish("q", b"m", priority=priority)
    row = desk.get(Q + "q")[1]
    assert row["messages"] == 3
    known = ("messages_ready_high", "messages_ready_normal", "messages_by_priority", "messages_active_priorities")
    assert {name: row[name] for name in known if name in row} == columns


def test_the_queues_of_a_user_are_those_that_the_user_has_declared() -> None:
    desk = desk_with("q")
    peer = desk.lab.connect()
    peer.declare("guests", durable=True)
    peer.declare("own", exclusive=True)
    path = "/api/users/guest/queues"
    assert [(row["name"], row["exclusive"]) for row in desk.get(path)[1]] == [("guests", False), ("own", True)]
    assert desk.get(path, sort="name", sort_reverse="true")[1][0]["name"] == "own"
    assert desk.get("/api/users/nobody/queues") == (200, [])


def test_no_figure_about_collections_of_garbage_is_negative() -> None:
    """Typed clients read unsigned numbers, and lose the whole answer otherwise."""
    desk = Desk()
    for kind in ("classic", "quorum", "stream"):
        desk.ask("PUT", f"{Q}{kind}", {"durable": True, "arguments": {"x-queue-type": kind}})
    desk.lab.connect()
    rows = {row["name"]: row for row in desk.get("/api/queues/detailed")[1]}
    assert "garbage_collection" not in rows["stream"]
    found = [row["garbage_collection"] for row in (rows["classic"], rows["quorum"], *desk.get("/api/connections")[1])]
    assert all(number >= 0 for figures in found for number in figures.values())
