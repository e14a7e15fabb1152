from __future__ import annotations

from pamqp import commands

from tests.management.asking import Desk
from tests.stepping import counted


def test_whoami_returns_name_and_tags() -> None:
    assert Desk().get("/api/whoami") == (200, {"name": "guest", "tags": ["administrator"], "is_internal_user": True})


def test_the_overview_has_the_imitated_version() -> None:
    status, overview = Desk(compat="3.13").get("/api/overview")
    assert status == 200
    assert overview["rabbitmq_version"].startswith("3.13")
    assert overview["listeners"] == [
        {"node": overview["node"], "protocol": "amqp", "ip_address": "127.0.0.1", "port": 5672, "socket_opts": []}
    ]


def test_counts_in_the_overview_are_current() -> None:
    desk = Desk()
    peer = desk.lab.connect()
    peer.call(commands.Queue.Declare(queue="q"))
    peer.publish("q")
    overview = desk.get("/api/overview")[1]
    assert overview["object_totals"] == {
        "connections": 1,
        "channels": 1,
        "exchanges": len(desk.lab.vhost.exchanges),
        "queues": 1,
        "consumers": 0,
    }
    totals = overview["queue_totals"]
    assert (totals["messages"], totals["messages_ready"], totals["messages_unacknowledged"]) == (1, 1, 0)
    assert overview["message_stats"]["publish"] == 1
    assert overview["churn_rates"]["queue_created"] == 1


def test_the_overview_takes_a_step_for_each_queue() -> None:
    desk = Desk()
    peer = desk.lab.connect()
    for number in range(20):
        peer.declare(f"q{number}")
        peer.publish(f"q{number}")
    steps, overview = counted(
        desk.steps("GET", "/api/overview"), {22: lambda: peer.call(commands.Queue.Delete(queue="q19"))}
    )
    assert steps >= 40
    # The queues were counted before, their messages afterwards.
    assert (overview["object_totals"]["queues"], overview["queue_totals"]["messages"]) == (20, 19)


def test_a_user_without_monitoring_has_an_overview_of_visible_objects() -> None:
    desk = Desk()
    peer = desk.lab.connect()
    peer.call(commands.Queue.Declare(queue="q"))
    peer.publish("q")
    desk.be("management")
    overview = desk.get("/api/overview")[1]
    assert set(overview["object_totals"].values()) == {0}
    assert overview["message_stats"] == {}
    assert "listeners" not in overview


def test_with_disable_stats_the_overview_has_no_statistics() -> None:
    overview = Desk().get("/api/overview", disable_stats="true")[1]
    assert overview["disable_stats"] is True
    assert not {"message_stats", "churn_rates", "queue_totals"} & overview.keys()
    assert "queue_totals" in Desk().get("/api/overview", disable_stats="true", enable_queue_totals="true")[1]


def test_naming_the_cluster_requires_an_administrator() -> None:
    desk = Desk()
    assert desk.get("/api/cluster-name") == (200, {"name": desk.broker.node})
    assert desk.ask("PUT", "/api/cluster-name", {"name": "c"}) == (204, None)
    assert desk.get("/api/cluster-name") == (200, {"name": "c"})
    assert desk.get("/api/overview")[1]["cluster_name"] == "c"
    assert desk.ask("PUT", "/api/cluster-name", {}) == (400, "[{key_missing,name}]")
    desk.be("monitoring")
    assert desk.ask("PUT", "/api/cluster-name", {"name": "d"}) == (401, "Not administrator user")


def test_version_and_extensions_are_answered() -> None:
    assert Desk(compat="4.3").get("/api/version") == (200, "4.3.6")
    assert Desk().get("/api/extensions") == (200, [{"javascript": "dispatcher.js"}])
