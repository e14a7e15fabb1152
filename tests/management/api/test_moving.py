from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.queues.queue import Queue, QueueDeclaration
from tests.broker_parts import push
from tests.management.asking import Desk

MOVE = "/_broker/queues/%2F/q/move"


@pytest.fixture
def desk() -> Desk:
    return Desk()


def declare(desk: Desk, name: str = "q", **arguments: Any) -> Queue:
    table = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    return desk.broker.vhosts["/"].declare_queue(QueueDeclaration(name, table, is_durable=True))


def test_moving_requires_the_permission_to_read(desk: Desk) -> None:
    declare(desk)
    desk.broker.users.set_permission(desk.user, "/", Permission(read="^$"))
    assert desk.ask("POST", MOVE, {"destination": {"queue": "q"}})[0] == 401


def test_messages_are_moved_to_another_queue(desk: Desk) -> None:
    queue, other = declare(desk), declare(desk, "other")
    push(queue, b"one", b"two", b"three")
    assert desk.ask("POST", MOVE, {"destination": {"queue": "other"}, "count": 2}) == (
        200,
        {"moved": 2, "messages_ready": 1, "reason": None},
    )
    assert [message.body for message in other.messages()] == [b"one", b"two"]


def test_messages_are_moved_through_an_exchange_of_another_vhost(desk: Desk) -> None:
    desk.ask("PUT", "/api/vhosts/v")
    push(declare(desk), b"one")
    there = desk.broker.vhosts["v"]
    other = there.declare_queue(QueueDeclaration("q", {}, is_durable=True))
    assert desk.ask("POST", MOVE, {"destination": {"vhost": "v", "exchange": "amq.default"}})[1]["moved"] == 1
    assert other.ready_count == 1


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({}, 400),
        ({"destination": "q"}, 400),
        ({"destination": {}}, 400),
        ({"destination": {"queue": "other", "exchange": ""}}, 400),
        ({"destination": {"queue": "q"}}, 400),
        ({"destination": {"queue": 5}}, 400),
        ({"destination": {"queue": "none"}}, 404),
        ({"destination": {"exchange": "none"}}, 404),
        ({"destination": {"queue": "q", "vhost": "none"}}, 400),
        ({"destination": {"queue": "q", "vhost": []}}, 400),
        ({"destination": {"queue": "other"}, "count": -1}, 400),
        ({"destination": {"queue": "other"}, "count": "x"}, 400),
    ],
)
def test_an_invalid_move_moves_nothing(desk: Desk, given: Any, status: int) -> None:
    queue = declare(desk)
    declare(desk, "other")
    push(queue, b"one")
    assert desk.ask("POST", MOVE, given)[0] == status
    assert queue.ready_count == 1


def test_streams_are_not_moved(desk: Desk) -> None:
    push(declare(desk, queue_type="stream"), b"one")
    declare(desk, "other")
    assert desk.ask("POST", MOVE, {"destination": {"queue": "other"}})[0] == 400
