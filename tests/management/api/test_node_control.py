from __future__ import annotations

import pytest

from amqp_broker.amqp.errors import BadCredentials
from amqp_broker.broker.queues.queue import QueueDeclaration
from amqp_broker.settings.settings import Settings
from tests.management.asking import Desk, StillNode


class Commanded(StillNode):
    """A node that records its commands."""

    def __init__(self) -> None:
        super().__init__()
        self.commands: list[tuple[str, ...]] = []

    def data_folder(self) -> str:
        return "/data"

    def stop_app(self) -> None:
        self.commands.append(("stop_app",))
        self.state = "stopped"

    def set_alarm(self, resource: str, is_on: bool) -> None:
        self.commands.append(("alarm", resource, str(is_on)))

    def watch_disk(self, is_on: bool) -> None:
        self.commands.append(("disk", str(is_on)))

    def set_memory_limit(self, text: str) -> None:
        Settings(vm_memory_high_watermark=text).check()
        self.commands.append(("memory", text))


@pytest.fixture
def desk() -> Desk:
    desk = Desk(default_pass="secret")
    desk.node = Commanded()
    return desk


def declare_queue(desk: Desk) -> None:
    vhost = desk.broker.vhosts["/"]
    vhost.declare_queue(QueueDeclaration("q", {}, is_durable=True))


def test_a_node_has_a_state(desk: Desk) -> None:
    status, node = desk.get("/_broker/node")
    assert (status, node["name"], node["is_started"], node["state"]) == (200, "rabbit@localhost", True, "running")
    desk.node.state = "stopped"
    assert desk.get("/_broker/node")[1]["is_started"] is False


def test_the_status_has_numbers_and_settings_but_no_secret(desk: Desk) -> None:
    declare_queue(desk)
    status = desk.get("/_broker/status")[1]
    assert (status["queues"], status["vhosts"], status["connections"]) == (1, 1, 0)
    assert status["data_folder"] == "/data"
    assert (status["config_files"], status["log_files"]) == (["/etc/rabbitmq/rabbitmq.conf"], ["<stdout>"])
    assert status["settings"]["port"] == 5672
    assert "secret" not in str(status)


def test_an_invalid_limit_is_refused(desk: Desk) -> None:
    assert desk.ask("PUT", "/_broker/memory-limit", {"value": "0.4"})[0] == 204
    assert isinstance(desk.node, Commanded)
    assert desk.node.commands == [("memory", "0.4")]
    assert desk.ask("PUT", "/_broker/memory-limit", {"value": "much"})[0] == 400
    assert desk.ask("PUT", "/_broker/memory-limit", {"value": 5})[0] == 400
    assert desk.ask("PUT", "/_broker/memory-limit", {})[0] == 400


@pytest.mark.parametrize("path", ["/_broker/stop-app", "/_broker/suspend-listeners"])
def test_commands_to_the_node_require_an_administrator(desk: Desk, path: str) -> None:
    desk.user = desk.broker.users.add("u", "p", tags=("monitoring",))
    assert desk.ask("POST", path)[0] == 401
    assert desk.get("/_broker/node")[0] == 200


def test_alarms_and_the_watch_of_the_disk_are_commands(desk: Desk) -> None:
    assert desk.ask("PUT", "/_broker/alarms/memory")[0] == 204
    assert desk.ask("DELETE", "/_broker/alarms/disk")[0] == 204
    assert desk.ask("PUT", "/_broker/alarms/bogus")[0] == 404
    assert desk.ask("DELETE", "/_broker/disk-monitoring")[0] == 204
    assert isinstance(desk.node, Commanded)
    assert desk.node.commands == [("alarm", "memory", "True"), ("alarm", "disk", "False"), ("disk", "False")]


def test_settings_of_advanced_config_apply_to_new_connections(desk: Desk) -> None:
    assert desk.ask("PUT", "/_broker/environment", {"value": "[{rabbit,[{channel_max,7}]}]."})[0] == 204
    assert desk.broker.settings.channel_max == 7
    assert desk.ask("PUT", "/_broker/environment", {"value": "[{rabbit,[{bogus,{1}}]}]."})[0] == 400


def test_a_message_size_of_0_is_the_limit_of_the_imitated_version(desk: Desk) -> None:
    default = desk.broker.settings.message_bytes_max
    for given, expected in ((7, 7), (0, default)):
        environment = f"[{{rabbit,[{{max_message_size,{given}}}]}}]."
        assert desk.ask("PUT", "/_broker/environment", {"value": environment})[0] == 204
        assert desk.broker.settings.message_bytes_max == expected


def test_the_list_of_local_users_counts_at_once(desk: Desk) -> None:
    desk.broker.users.change_password(desk.broker.users["guest"], "guest")
    for term, refused in (("[]", False), ('[<<"guest">>]', True)):
        environment = f"[{{rabbit,[{{loopback_users,{term}}}]}}]."
        assert desk.ask("PUT", "/_broker/environment", {"value": environment})[0] == 204
        assert ("guest" in desk.broker.settings.local_users) is refused
        try:
            desk.broker.logins.check("guest", b"guest", "192.0.2.1")
        except BadCredentials:
            assert refused
        else:
            assert not refused
