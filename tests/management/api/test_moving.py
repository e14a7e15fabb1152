from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.queues.queue import Queue, QueueDeclaration
from tests.broker_parts import push
from tests.management.asking import Desk
from tests.peer import Peer
from tests.present import present

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


# Dead letters that return

RETURN = "/_broker/queues/%2F/dead/return"


def rejected(desk: Desk, *bodies: bytes, queue: str = "work") -> Peer:
    """A client that has rejected messages of a queue, whose dead letters go to the queue `dead`."""
    peer = desk.lab.connect()
    peer.declare("dead", durable=True)
    peer.declare(queue, durable=True, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    for body in bodies:
        peer.publish(queue, body)
        assert peer.get(queue, no_ack=False)
    peer.send(commands.Basic.Nack(0, multiple=True, requeue=False))
    return peer


def test_dead_letters_return_to_the_queues_that_gave_them_up(desk: Desk) -> None:
    rejected(desk, b"1", b"2")
    peer = rejected(desk, b"3", queue="other")
    assert desk.ask("POST", RETURN, {}) == (200, {"moved": 3, "messages_ready": 0, "reason": None})
    assert [present(peer.get("work"))[1].body for _ in range(2)] == [b"1", b"2"]
    assert present(peer.get("other"))[1].body == b"3"


def test_some_dead_letters_return(desk: Desk) -> None:
    rejected(desk, b"1", b"2", b"3")
    assert desk.ask("POST", RETURN, {"count": 2})[1] == {"moved": 2, "messages_ready": 1, "reason": None}


def test_a_dead_letter_that_has_waited_elsewhere_returns_to_its_last_queue_but_this(desk: Desk) -> None:
    peer = rejected(desk, b"1")
    peer.declare("wait", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    _, content = present(peer.get("dead"))
    peer.publish("dead", b"again", headers=content.properties.headers)
    assert desk.ask("POST", RETURN, {})[1]["moved"] == 1
    assert present(peer.get("work"))[1].body == b"again"


def test_a_message_without_a_death_stays_with_those_behind_it(desk: Desk) -> None:
    peer = rejected(desk, b"1")
    peer.publish("dead", b"alive")
    assert desk.ask("POST", RETURN, {})[1] == {
        "moved": 1,
        "messages_ready": 1,
        "reason": "a message has no x-death header that names another queue",
    }


def test_a_dead_letter_whose_queue_is_gone_or_full_stays(desk: Desk) -> None:
    peer = rejected(desk, b"1")
    peer.call(commands.Queue.Delete(queue="work"))
    answer = desk.ask("POST", RETURN, {})[1]
    assert answer == {"moved": 0, "messages_ready": 1, "reason": "there is no queue 'work' in vhost '/'"}
    peer.declare("work", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    assert desk.ask("POST", RETURN, {})[1]["reason"] == "queue 'work' in vhost '/' is full"


@pytest.mark.parametrize("deaths", [5, "x", [], [5], [{"queue": 5}], [{"queue": "dead"}]])
def test_a_header_that_is_no_history_is_no_error(desk: Desk, deaths: Any) -> None:
    peer = rejected(desk)
    peer.publish("dead", b"odd", headers={"x-death": deaths})
    assert desk.ask("POST", RETURN, {})[1]["moved"] == 0


def test_returning_requires_the_permissions_to_read_and_to_publish(desk: Desk) -> None:
    rejected(desk, b"1")
    desk.broker.users.set_permission(desk.user, "/", Permission(read="^$"))
    assert desk.ask("POST", RETURN, {})[0] == 401
    desk.broker.users.set_permission(desk.user, "/", Permission(read=".*", write="^x$"))
    assert desk.ask("POST", RETURN, {})[0] == 401
    assert desk.ask("POST", RETURN.replace("dead", "none"), {})[0] in (401, 404)


def test_a_negative_count_of_dead_letters_is_refused(desk: Desk) -> None:
    rejected(desk, b"1")
    assert desk.ask("POST", RETURN, {"count": -1}) == (400, "count must not be negative")


# Chosen messages


def positions(desk: Desk, queue: str) -> list[int]:
    _, answer = desk.ask("GET", f"/_broker/queues/%2F/{queue}/peek")
    return [message["position"] for message in answer["messages"]]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_chosen_messages_are_moved(desk: Desk, kind: str) -> None:
    queue, other = declare(desk, queue_type=kind), declare(desk, "other")
    push(queue, b"one", b"two", b"three")
    chosen = positions(desk, "q")[1:]
    answer = desk.ask("POST", MOVE, {"destination": {"queue": "other"}, "positions": chosen})
    assert answer == (200, {"moved": 2, "messages_ready": 1, "reason": None})
    assert [message.body for message in other.messages()] == [b"two", b"three"]


def test_chosen_dead_letters_return(desk: Desk) -> None:
    peer = rejected(desk, b"1", b"2", b"3")
    chosen = [positions(desk, "dead")[1]]
    assert desk.ask("POST", RETURN, {"positions": chosen})[1] == {"moved": 1, "messages_ready": 2, "reason": None}
    assert present(peer.get("work"))[1].body == b"2"
    assert desk.ask("POST", RETURN, {"positions": chosen})[1] == {
        "moved": 0,
        "messages_ready": 2,
        "reason": "not ready here any more, or too far behind others: 1 of the chosen",
    }


def test_no_position_chooses_no_message(desk: Desk) -> None:
    rejected(desk, b"1")
    assert desk.ask("POST", RETURN, {"positions": []})[1] == {"moved": 0, "messages_ready": 1, "reason": None}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"positions": 1}, "positions must be a list of integers"),
        ({"positions": ["1"]}, "positions must be a list of integers"),
        ({"positions": [True]}, "positions must be a list of integers"),
        ({"positions": [1.0]}, "positions must be a list of integers"),
        ({"positions": list(range(1001))}, "positions must not have more than 1000 items"),
        ({"positions": [1], "count": 1}, "give count or positions, not both"),
    ],
)
def test_positions_that_are_none_are_refused(desk: Desk, given: Any, reason: str) -> None:
    rejected(desk, b"1")
    assert desk.ask("POST", RETURN, given) == (400, reason)


def test_positions_of_a_stream_are_refused(desk: Desk) -> None:
    push(declare(desk, queue_type="stream"), b"one")
    declare(desk, "other")
    assert desk.ask("POST", MOVE, {"destination": {"queue": "other"}, "positions": [0]})[0] == 400
    assert desk.broker.vhosts["/"].queues["q"].holds == 0
