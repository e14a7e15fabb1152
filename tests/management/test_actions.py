from __future__ import annotations

import pytest

from tests.management.asking import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


def declare(desk: Desk, vhost: str = "/") -> None:
    desk.broker.vhosts[vhost].declare_queue(
        "q", is_durable=True, is_auto_delete=False, owner=None, connection=None, arguments_={}
    )


def test_rabbitmqs_reset_is_of_statistics_only(desk: Desk) -> None:
    declare(desk)
    assert desk.ask("DELETE", "/api/reset")[0] == 204
    assert desk.ask("DELETE", f"/api/reset/{desk.broker.node}")[0] == 204
    assert desk.ask("DELETE", "/api/reset/none") == (404, "Not Found")
    assert desk.ask("POST", "/api/rebalance/queues")[0] == 204
    assert list(desk.broker.vhosts["/"].queues) == ["q"]


def test_our_own_reset_deletes_everything(desk: Desk) -> None:
    declare(desk)
    desk.broker.add_user("alice", "a")
    assert desk.ask("POST", "/_broker/reset")[0] == 204
    assert desk.broker.vhosts["/"].queues == {}
    assert list(desk.broker.users) == ["guest"]


def test_a_vhost_alone_is_reset(desk: Desk) -> None:
    desk.ask("PUT", "/api/vhosts/v")
    declare(desk)
    declare(desk, "v")
    assert desk.ask("POST", "/_broker/reset", query={"vhost": "v"})[0] == 204
    assert (list(desk.broker.vhosts["/"].queues), desk.broker.vhosts["v"].queues) == (["q"], {})
    assert desk.ask("POST", "/_broker/reset", query={"vhost": "none"}) == (404, "Not Found")


def test_only_administrators_reset(desk: Desk) -> None:
    desk.broker.set_tags(desk.user, ["monitoring"])
    assert desk.ask("POST", "/_broker/reset")[0] == 401


def test_actions_of_mirrored_queues_do_nothing(desk: Desk) -> None:
    declare(desk)
    path = "/api/queues/%2F/q/actions"
    assert desk.ask("POST", path, {"action": "sync"})[0] == 204
    assert desk.ask("POST", path, {"action": "x"}) == (400, ["unknown", "x"])
    assert desk.ask("POST", path, {}) == (400, "[{key_missing,action}]")
    assert desk.ask("POST", "/api/queues/%2F/none/actions", {"action": "sync"}) == (404, "Not Found")


def test_settings_are_told_without_passwords(desk: Desk) -> None:
    status, settings = desk.get("/api/config/effective")
    assert (status, settings["default_user"]) == (200, "guest")
    assert [name for name in settings if "pass" in name] == []
