from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.queues.queue import QueueDeclaration
from tests.broker_parts import new_message
from tests.management.asking import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_vhost_is_created_with_metadata_and_all_permissions_for_its_creator(desk: Desk) -> None:
    given = {"description": "d", "tags": "a,b", "tracing": True, "default_queue_type": "quorum"}
    assert desk.ask("PUT", "/api/vhosts/v", given)[0] == 201
    status, vhost = desk.get("/api/vhosts/v")
    assert status == 200
    assert (vhost["description"], vhost["tags"], vhost["tracing"]) == ("d", ["a", "b"], True)
    assert vhost["metadata"] == {"description": "d", "tags": ["a", "b"], "default_queue_type": "quorum"}
    assert vhost["cluster_state"] == {desk.broker.node: "running"}
    assert desk.user.permissions["v"] == Permission()


def test_a_change_resets_unmentioned_metadata(desk: Desk) -> None:
    desk.ask("PUT", "/api/vhosts/v", {"description": "d", "tags": "a", "default_queue_type": "quorum"})
    desk.ask("POST", "/api/vhosts/v/deletion/protection")
    assert desk.ask("PUT", "/api/vhosts/v", {"description": None, "tags": None, "tracing": True})[0] == 204
    vhost = desk.get("/api/vhosts/v")[1]
    assert (vhost["description"], vhost["tags"], vhost["default_queue_type"]) == ("", [], "classic")
    assert vhost["protected_from_deletion"] is vhost["tracing"] is True


def test_a_change_in_rabbitmq_4_0_keeps_the_type_of_queues() -> None:
    desk = Desk(compat="4.0")
    desk.ask("PUT", "/api/vhosts/v", {"description": "d", "default_queue_type": "quorum"})
    desk.ask("PUT", "/api/vhosts/v", {"tags": "a"})
    vhost = desk.get("/api/vhosts/v")[1]
    assert (vhost["description"], vhost["tags"], vhost["default_queue_type"]) == ("", ["a"], "quorum")


def test_a_change_in_rabbitmq_3_keeps_unmentioned_metadata() -> None:
    desk = Desk(compat="3.13")
    desk.ask("PUT", "/api/vhosts/v", {"description": "d", "tags": "a"})
    assert desk.ask("PUT", "/api/vhosts/v", {"tracing": True})[0] == 204
    assert desk.ask("PUT", "/api/vhosts/v", {"tags": ["b"]})[0] == 204
    vhost = desk.get("/api/vhosts/v")[1]
    assert (vhost["description"], vhost["tags"], vhost["tracing"]) == ("d", ["b"], True)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"description": 5}, ["not_string", "description"]),
        ({"tags": 5}, "tags must be a string or a list of strings"),
        ({"tracing": "maybe"}, ["not_boolean", "maybe"]),
        ({"default_queue_type": "x"}, "x is not a valid queue type"),
        ({"default_queue_type": 5}, "Unsupported default queue type: 5"),
    ],
)
def test_an_invalid_vhost_is_not_created(desk: Desk, given: Any, reason: Any) -> None:
    assert desk.ask("PUT", "/api/vhosts/v", given) == (400, reason)
    assert "v" not in desk.broker.vhosts


def test_a_protected_vhost_is_not_deleted(desk: Desk) -> None:
    desk.ask("PUT", "/api/vhosts/v")
    assert desk.ask("POST", "/api/vhosts/v/deletion/protection")[0] == 204
    assert desk.get("/api/vhosts/v")[1]["protected_from_deletion"] is True
    assert desk.get("/api/vhosts/v/deletion/protection") == (200, {"protected_from_deletion": True})
    status, reason = desk.ask("DELETE", "/api/vhosts/v")
    assert (status, "protected from deletion" in reason) == (412, True)
    assert desk.ask("DELETE", "/api/vhosts/v/deletion/protection")[0] == 204
    assert desk.ask("DELETE", "/api/vhosts/v")[0] == 204
    assert desk.ask("DELETE", "/api/vhosts/v") == (404, "Not Found")


def test_messages_of_a_vhost_are_counted(desk: Desk) -> None:
    vhost = desk.broker.vhosts["/"]
    queue = vhost.declare_queue(QueueDeclaration("q", {}, is_durable=True))
    queue.push(new_message(b"x"))
    assert desk.get("/api/vhosts/%2F")[1]["messages_ready"] == 1


def test_a_vhost_has_the_counters_of_its_messages(desk: Desk) -> None:
    vhost = desk.broker.vhosts["/"]
    assert "message_stats" not in desk.get("/api/vhosts/%2F")[1]
    vhost.counts.add(vhost.default_exchange, [], 3, mandatory=False)
    stats = desk.get("/api/vhosts/%2F")[1]["message_stats"]
    assert (stats["publish"], stats["drop_unroutable"]) == (3, 3)
    assert desk.get("/api/vhosts")[1][0]["message_stats"] == stats
    assert "message_stats" not in desk.get("/api/vhosts/%2F", disable_stats="true")[1]
    assert "message_stats" not in desk.get("/api/vhosts", disable_stats="true")[1][0]


def test_a_vhost_has_samples_of_its_lengths_if_the_query_asks_for_them(desk: Desk) -> None:
    desk.node.rates.start()
    peer = desk.lab.connect()
    peer.declare("q")
    peer.publish("q")
    desk.lab.advance(20_000)
    desk.broker.now = desk.lab.now
    assert "messages_details" not in desk.get("/api/vhosts/%2F")[1]
    row = desk.get("/api/vhosts/%2F", lengths_age="60", lengths_incr="5")[1]
    samples = [one["sample"] for one in row["messages_ready_details"]["samples"]]
    assert (row["messages_ready"], len(samples), samples[0], samples[-1]) == (1, 13, 1, 0)


def test_other_users_see_the_vhosts_that_they_may_open(desk: Desk) -> None:
    desk.ask("PUT", "/api/vhosts/v")
    desk.user = desk.broker.users.add("alice", "a", tags=("management",))
    assert desk.get("/api/vhosts") == (200, [])
    desk.broker.users.set_permission(desk.user, "v", Permission())
    assert [vhost["name"] for vhost in desk.get("/api/vhosts")[1]] == ["v"]


def test_a_vhost_is_started_on_this_node_only(desk: Desk) -> None:
    assert desk.ask("POST", f"/api/vhosts/%2F/start/{desk.broker.node}")[0] == 204
    assert desk.ask("POST", "/api/vhosts/%2F/start/x") == (400, "Request to node x failed with nodedown")
    assert desk.ask("POST", "/api/vhosts/none/start/x")[0] == 404
