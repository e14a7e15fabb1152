from __future__ import annotations

import pytest

from amqp_broker.broker.queues.queue import QueueDeclaration
from tests.management.asking import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


def declare(desk: Desk, vhost: str = "/") -> None:
    desk.broker.vhosts[vhost].declare_queue(QueueDeclaration("q", {}, is_durable=True))


def test_a_reset_deletes_everything(desk: Desk) -> None:
    declare(desk)
    desk.broker.users.add("alice", "a")
    assert desk.ask("POST", "/_broker/reset")[0] == 204
    assert desk.broker.vhosts["/"].queues == {}
    assert list(desk.broker.users) == ["guest"]


def test_a_reset_of_a_vhost_does_not_change_others(desk: Desk) -> None:
    desk.ask("PUT", "/api/vhosts/v")
    declare(desk)
    declare(desk, "v")
    assert desk.ask("POST", "/_broker/reset", query={"vhost": "v"})[0] == 204
    assert (list(desk.broker.vhosts["/"].queues), desk.broker.vhosts["v"].queues) == (["q"], {})
    assert desk.ask("POST", "/_broker/reset", query={"vhost": "none"}) == (404, "Not Found")


def test_a_reset_requires_an_administrator(desk: Desk) -> None:
    desk.broker.users.set_tags(desk.user, ["monitoring"])
    assert desk.ask("POST", "/_broker/reset")[0] == 401


def test_a_running_node_is_not_reset(desk: Desk) -> None:
    desk.broker.add_vhost("v")
    declare(desk)
    assert desk.ask("POST", "/_broker/reset-node")[0] == 400
    desk.node.state = "stopped"
    assert desk.ask("POST", "/_broker/reset-node")[0] == 204
    assert set(desk.broker.vhosts) == {"/"}
    assert desk.broker.vhosts["/"].queues == {}
    assert set(desk.broker.users) == {"guest"}
