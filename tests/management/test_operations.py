from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.config import Config
from tests.management.asking import Desk, StillNode


class Told(StillNode):
    """A node that remembers what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, ...]] = []

    def data_folder(self) -> str:
        return "/data"

    def stop_app(self) -> None:
        self.told.append(("stop_app",))
        self.state = "stopped"

    def set_memory_limit(self, text: str) -> None:
        Config(vm_memory_high_watermark=text).check()
        self.told.append(("memory", text))


@pytest.fixture
def desk() -> Desk:
    desk = Desk(default_pass="secret")
    desk.node = Told()
    return desk


def declare_queue(desk: Desk) -> None:
    vhost = desk.broker.vhosts["/"]
    vhost.declare_queue("q", is_durable=True, is_auto_delete=False, owner=None, connection=None, arguments_={})


def test_a_node_tells_its_state(desk: Desk) -> None:
    status, node = desk.get("/_broker/node")
    assert (status, node["name"], node["is_started"], node["state"]) == (200, "rabbit@localhost", True, "running")
    desk.node.state = "stopped"
    assert desk.get("/_broker/node")[1]["is_started"] is False


def test_its_status_has_numbers_and_settings_but_no_secret(desk: Desk) -> None:
    declare_queue(desk)
    status = desk.get("/_broker/status")[1]
    assert (status["queues"], status["vhosts"], status["connections"]) == (1, 1, 0)
    assert status["data_folder"] == "/data"
    assert status["settings"]["port"] == 5672
    assert "secret" not in str(status)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"user": "guest", "password": "secret"}, 204),
        ({"user": "guest", "password": "other"}, 401),
        ({"user": "nobody", "password": "secret"}, 401),
        ({"user": "guest"}, 400),
        ({"user": 1, "password": "x"}, 400),
    ],
)
def test_a_password_is_a_users_or_not(desk: Desk, given: dict[str, Any], code: int) -> None:
    assert desk.ask("POST", "/_broker/authenticate", given)[0] == code


def test_a_trace_goes_on_and_off(desk: Desk) -> None:
    assert desk.ask("PUT", "/_broker/trace/%2F")[0] == 204
    assert desk.broker.vhosts["/"].trace is not None
    assert desk.ask("DELETE", "/_broker/trace/%2F")[0] == 204
    assert desk.broker.vhosts["/"].trace is None
    assert desk.ask("PUT", "/_broker/trace/nowhere")[0] == 404


def test_a_trace_is_rabbitmqs_unless_more_is_wanted(desk: Desk) -> None:
    assert desk.get("/_broker/trace/%2F")[1] == {"is_on": False, "extended": False}
    assert desk.ask("PUT", "/_broker/trace/%2F")[0] == 204
    assert desk.get("/_broker/trace/%2F")[1] == {"is_on": True, "extended": False}
    assert desk.ask("PUT", "/_broker/trace/%2F", {"extended": True})[0] == 204
    assert desk.get("/_broker/trace/%2F")[1] == {"is_on": True, "extended": True}
    for wrong in ({"extended": "yes"}, {"queue": "q"}):
        assert desk.ask("PUT", "/_broker/trace/%2F", wrong)[0] == 400


def test_a_limit_that_is_none_is_refused(desk: Desk) -> None:
    assert desk.ask("PUT", "/_broker/memory-limit", {"value": "0.4"})[0] == 204
    assert desk.node.told == [("memory", "0.4")]
    assert desk.ask("PUT", "/_broker/memory-limit", {"value": "much"})[0] == 400
    assert desk.ask("PUT", "/_broker/memory-limit", {"value": 5})[0] == 400
    assert desk.ask("PUT", "/_broker/memory-limit", {})[0] == 400


def test_only_a_stopped_node_is_reset(desk: Desk) -> None:
    desk.broker.add_vhost("v")
    declare_queue(desk)
    assert desk.ask("POST", "/_broker/reset-node")[0] == 400
    assert desk.ask("POST", "/_broker/stop-app")[0] == 202
    assert desk.ask("POST", "/_broker/reset-node")[0] == 204
    assert set(desk.broker.vhosts) == {"/"}
    assert desk.broker.vhosts["/"].queues == {}
    assert set(desk.broker.users) == {"guest"}


@pytest.mark.parametrize("path", ["/_broker/stop-app", "/_broker/reset-node", "/_broker/authenticate"])
def test_only_an_administrator_commands_the_node(desk: Desk, path: str) -> None:
    desk.user = desk.broker.add_user("u", "p", tags=frozenset({"monitoring"}))
    assert desk.ask("POST", path)[0] == 401
    assert desk.get("/_broker/node")[0] == 200
