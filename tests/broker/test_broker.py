from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from pamqp import commands

from amqp_broker.amqp.errors import InternalError, NotAllowed
from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.clients.client_connection import Connection
from amqp_broker.broker.queues.queue import DRAIN_MESSAGES_MAX
from amqp_broker.broker.scheduling.portions import WORK_MAX
from amqp_broker.settings.settings import Settings
from tests.broker_parts import (
    CollectingConsumer,
    bind,
    new_broker,
    new_connection,
    new_message,
    new_queue,
    new_route,
    new_vhost,
    push,
)
from tests.memory_journal import MemoryJournal
from tests.peer import Lab, publish_bytes
from tests.stepping import counted


def admitted(broker: Broker, user_name: str = "guest", vhost: str = "/") -> Connection:
    connection = new_connection()
    connection.user = broker.users[user_name]
    broker.admit(connection, connection.user, vhost)
    return connection


def refusal(broker: Broker, user_name: str = "guest", vhost: str = "/") -> str:
    with pytest.raises(NotAllowed) as caught:
        admitted(broker, user_name, vhost)
    return str(caught.value)


# Names, users, vhosts


def test_unique_names_are_a_prefix_and_22_characters() -> None:
    broker = Broker(Settings(), lambda size: b"\xff" * size)
    assert broker.unique_name("amq.gen-") == "amq.gen-" + base64.urlsafe_b64encode(b"\xff" * 16).decode()[:22]


def test_unique_names_differ() -> None:
    broker = new_broker()
    assert len({broker.unique_name("amq.ctag-") for _ in range(100)}) == 100


def test_a_new_broker_has_the_configured_vhost_and_user() -> None:
    broker = new_broker(default_user="anna", default_pass="secret", default_vhost="test")
    assert list(broker.vhosts) == ["test"]
    anna = broker.users["anna"]
    assert anna.accepts(b"secret")
    assert anna.tags == ("administrator",)
    assert anna.permissions == {"test": Permission()}


def test_adding_a_vhost_twice_keeps_the_first() -> None:
    broker = new_broker()
    assert broker.add_vhost("v") is broker.add_vhost("v")


def test_a_new_user_has_no_permissions() -> None:
    broker = new_broker()
    broker.users.add("anna", "secret")
    assert refusal(broker, "anna") == "access to vhost '/' refused for user 'anna'"


def test_two_users_with_the_same_password_have_different_hashes() -> None:
    broker = new_broker()
    assert broker.users.add("a", "secret").password_hash != broker.users.add("b", "secret").password_hash


def test_a_change_of_permissions_empties_the_route_caches() -> None:
    broker = new_broker()
    vhost = broker.vhosts["/"]
    cache = vhost.route_cache.of("guest")
    cache.update({b"route": new_route(vhost)})
    broker.users.set_permission(broker.users["guest"], "/", Permission(write=""))
    assert cache == {}


# Connections


def test_an_admitted_connection_is_counted_until_it_is_dismissed() -> None:
    broker = new_broker()
    connection = admitted(broker)
    assert connection.vhost is broker.vhosts["/"]
    assert broker.connections == broker.vhosts["/"].connections == {connection}
    broker.dismiss(connection)
    assert broker.connections == broker.vhosts["/"].connections == set()


def test_a_connection_that_was_never_admitted_can_be_dismissed() -> None:
    new_broker().dismiss(new_connection())


def test_dismissing_a_connection_deletes_its_exclusive_queues() -> None:
    broker = new_broker()
    owner, vhost = admitted(broker), broker.vhosts["/"]
    for name in ("a", "b"):
        new_queue(vhost, name, owner=owner, connection=owner)
    new_queue(vhost, "c")
    broker.dismiss(owner)
    assert list(vhost.queues) == ["c"]
    assert owner.exclusive_queues == set()


def test_the_connection_limit_of_the_node_is_enforced() -> None:
    broker = new_broker(connection_max=1)
    first = admitted(broker)
    assert refusal(broker) == "connection refused: node connection limit (1) is reached"
    broker.dismiss(first)
    admitted(broker)


def test_the_connection_limit_of_a_vhost_is_enforced() -> None:
    broker = new_broker()
    broker.vhosts["/"].limits.set("max-connections", 1)
    admitted(broker)
    assert refusal(broker) == "access to vhost '/' refused for user 'guest': connection limit (1) is reached"


def test_a_connection_to_a_missing_vhost_is_refused() -> None:
    assert refusal(new_broker(), vhost="nowhere") == "vhost nowhere not found"


def test_the_connection_limit_of_a_user_is_enforced() -> None:
    broker = new_broker()
    broker.users.set_limit(broker.users["guest"], "max-connections", 1)
    broker.users.set_permission(broker.users.add("anna", ""), "/", Permission())
    admitted(broker)
    admitted(broker, "anna")
    assert refusal(broker) == "connection refused for user 'guest': user connection limit (1) is reached"


def test_the_limits_are_checked_in_rabbitmqs_order() -> None:
    broker = new_broker(connection_max=0)
    vhost, guest = broker.vhosts["/"], broker.users["guest"]
    vhost.limits.set("max-connections", 0)
    broker.users.set_limit(guest, "max-connections", 0)
    guest.permissions.clear()
    assert "node connection limit" in refusal(broker, vhost="nowhere")
    broker.settings = Settings()
    assert "not found" in refusal(broker, vhost="nowhere")
    assert "refused for user 'guest': connection limit" in refusal(broker)
    vhost.limits.clear("max-connections")
    assert "user connection limit" in refusal(broker)
    broker.users.clear_limit(guest, "max-connections")
    assert refusal(broker) == "access to vhost '/' refused for user 'guest'"


def test_a_refused_connection_is_not_counted() -> None:
    broker = new_broker()
    refusal(broker, vhost="nowhere")
    assert broker.connections == set()


# Backlogs


def test_backlogs_are_drained_in_batches() -> None:
    broker = new_broker()
    queues = [new_queue(broker.vhosts["/"], name) for name in ("a", "b")]
    message = new_message(b"x")
    for queue in queues:
        for _ in range(2 * DRAIN_MESSAGES_MAX + 1):
            queue.push(message)
    collectors = [CollectingConsumer(queue).start() for queue in queues]
    assert [len(collector.taken) for collector in collectors] == [DRAIN_MESSAGES_MAX] * 2
    assert broker.drain_on()
    assert [len(collector.taken) for collector in collectors] == [2 * DRAIN_MESSAGES_MAX] * 2
    assert not broker.drain_on()
    assert [len(collector.taken) for collector in collectors] == [2 * DRAIN_MESSAGES_MAX + 1] * 2
    assert not broker.undrained


def test_a_backlog_of_a_deleted_queue_is_forgotten() -> None:
    broker = new_broker()
    queue = new_queue(broker.vhosts["/"])
    message = new_message(b"x")
    for _ in range(DRAIN_MESSAGES_MAX + 1):
        queue.push(message)
    collector = CollectingConsumer(queue).start()
    broker.vhosts["/"].remove_queue(queue)
    assert not broker.drain_on()
    assert len(collector.taken) == DRAIN_MESSAGES_MAX


def test_an_error_in_one_backlog_keeps_no_other_from_being_drained() -> None:
    broker, drained = new_broker(), list[int]()

    def fail() -> None:
        raise ZeroDivisionError

    broker.undrained += [lambda: drained.append(1), fail, lambda: drained.append(2)]
    with pytest.raises(ZeroDivisionError):
        broker.drain_on()
    assert not broker.drain_on()
    assert drained == [1, 2]


def test_without_backlogs_there_is_nothing_to_drain() -> None:
    assert not new_broker().drain_on()


def test_the_default_user_has_the_configured_tags_and_permissions() -> None:
    broker = new_broker(
        default_user="anna",
        default_user_tags="monitoring management",
        default_permissions_configure="^a",
        default_permissions_write="^b",
        default_permissions_read="^c",
    )
    user = broker.users["anna"]
    assert user.tags == ("monitoring", "management")
    assert user.permissions["/"] == Permission("^a", "^b", "^c")


def test_a_vhost_is_deleted_in_steps_and_lets_nothing_in() -> None:
    journal = MemoryJournal()
    broker = new_broker(journal)
    vhost = broker.add_vhost("v")
    broker.users.set_permission(broker.users["guest"], "v", Permission())
    for number in range(10):
        queue = new_queue(vhost, f"q{number}", is_durable=True)
        push(queue, b"m")
        bind(vhost.exchanges["amq.direct"], queue, vhost, "k")
    journal.commit()

    def look() -> None:
        assert 0 < len(vhost.queues) < 10
        with pytest.raises(InternalError, match="access to vhost 'v' refused for user 'guest': vhost 'v' is down"):
            admitted(broker, vhost="v")

    between: dict[int, Callable[[], object]] = {
        2: look,
        # An administrator without a connection may still change it.
        3: lambda: new_queue(vhost, "late", is_durable=True),
        4: lambda: vhost.remove_queue(vhost.queues["q9"]),
        5: journal.commit,
    }
    steps, _ = counted(broker.deleting_vhost("v"), between)
    assert steps >= 11
    assert "v" not in broker.vhosts
    journal.commit()
    assert {key[0] for key in journal.disk.definitions} == {"vhost", "user", "permission"}
    assert not journal.disk.messages
    assert "v" not in [key[1] for key in journal.disk.definitions]


def test_a_deletion_of_a_vhost_that_is_given_up_ends_at_once() -> None:
    broker = new_broker()
    vhost = broker.add_vhost("v")
    for number in range(10):
        new_queue(vhost, f"q{number}")
    steps = broker.deleting_vhost("v")
    next(steps)
    steps.close()
    assert (vhost.queues, "v" in broker.vhosts) == ({}, False)


def test_a_deleted_vhost_may_be_created_anew_but_not_before_its_end() -> None:
    broker = new_broker()
    vhost = broker.add_vhost("v")
    new_queue(vhost, "q")
    _, _ = counted(broker.deleting_vhost("v"), {1: lambda: broker.add_vhost("v")})
    assert "v" not in broker.vhosts
    assert not broker.add_vhost("v").is_down


def test_the_end_of_a_turn_is_called_once_for_each_who_asked() -> None:
    broker = new_vhost().broker
    calls: list[int] = []

    def again() -> None:
        calls.append(1)
        broker.turn_ends.append(lambda: calls.append(2))

    broker.turn_ends.append(again)
    broker.end_turn()
    assert calls == [1]
    broker.end_turn()
    broker.end_turn()
    assert calls == [1, 2]


def test_the_batches_of_many_backlogs_share_the_time_of_a_turn() -> None:
    lab = Lab()
    publisher = lab.connect()
    for number in range(20):
        publisher.declare(f"q{number}")
        publisher.send_bytes(publish_bytes(f"q{number}", b"8 octets") * 5000)
    lab.drain()
    reader = lab.connect()
    for number in range(20):
        reader.send(commands.Basic.Consume(queue=f"q{number}", no_ack=True, nowait=True))

    def left() -> int:
        return sum(queue.ready_count for queue in lab.vhost.queues.values())

    ready, turns = left(), 0
    turns_min = ready // (WORK_MAX + DRAIN_MESSAGES_MAX)
    while lab.broker.undrained:
        lab.broker.drain_on()
        assert ready - left() <= WORK_MAX + DRAIN_MESSAGES_MAX
        ready, turns = left(), turns + 1
    assert ready == 0
    assert turns >= turns_min > 1
