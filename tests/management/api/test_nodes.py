from __future__ import annotations

from tests.management.asking import Desk


def test_the_node_reports_usage_and_limits() -> None:
    desk = Desk()
    desk.broker.set_alarm("memory", True)
    (row,) = desk.get("/api/nodes")[1]
    assert (row["running"], row["mem_used"], row["mem_limit"], row["mem_alarm"]) == (True, 30_000_000, 10**9, True)
    assert (row["fd_used"], row["fd_total"], row["disk_free_alarm"]) == (10, 1024, False)
    assert desk.get("/api/nodes/" + desk.broker.node)[1] == row
    assert desk.get(f"/api/nodes/{desk.broker.node}/memory")[1]["memory"]["total"]["rss"] == 30_000_000
    assert desk.get("/api/nodes/nope") == (404, "Not Found")


def test_the_node_has_the_files_of_its_configuration_and_its_logs() -> None:
    (row,) = Desk(log_dir="/logs", log_file="own.log").get("/api/nodes")[1]
    assert row["config_files"] == ["/etc/rabbitmq/rabbitmq.conf"]
    assert row["log_files"] == ["/logs/own.log", "<stdout>"]


def test_the_node_and_its_status_have_the_plugins_that_are_enabled() -> None:
    desk = Desk(plugins="rabbitmq_management,rabbitmq_mqtt")
    (row,) = desk.get("/api/nodes")[1]
    assert row["enabled_plugins"] == desk.get("/_broker/status")[1]["plugins"]
    assert row["enabled_plugins"] == ["rabbitmq_management", "rabbitmq_mqtt"]


def test_nodes_require_the_tag_monitoring() -> None:
    desk = Desk()
    desk.be("management")
    assert desk.get("/api/nodes")[0] == 401


def test_settings_are_shown_without_passwords() -> None:
    status, settings = Desk().get("/api/config/effective")
    assert (status, settings["default_user"]) == (200, "guest")
    assert [name for name in settings if "_pass" in name] == []
