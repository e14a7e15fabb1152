from __future__ import annotations

import base64

import pytest

from amqp_broker.broker.access import Permission
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.connection import Connection
from amqp_broker.broker.queue import DRAIN_MESSAGES_MAX
from amqp_broker.config import Config
from amqp_broker.errors import NotAllowed
from tests.taker import Taker, new_broker, new_connection, new_message, new_queue


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
    broker = Broker(Config(), lambda size: b"\xff" * size)
    assert broker.unique_name("amq.gen-") == "amq.gen-" + base64.urlsafe_b64encode(b"\xff" * 16).decode()[:22]


def test_unique_names_differ() -> None:
    broker = new_broker()
    assert len({broker.unique_name("amq.ctag-") for _ in range(100)}) == 100


def test_a_fresh_broker_has_the_vhost_and_user_of_its_configuration() -> None:
    broker = new_broker(default_user="anna", default_pass="secret", default_vhost="test")
    assert list(broker.vhosts) == ["test"]
    anna = broker.users["anna"]
    assert anna.accepts(b"secret")
    assert anna.tags == {"administrator"}
    assert anna.permissions == {"test": Permission()}


def test_adding_a_vhost_twice_keeps_the_first() -> None:
    broker = new_broker()
    assert broker.add_vhost("v") is broker.add_vhost("v")


def test_a_new_user_has_no_permissions() -> None:
    broker = new_broker()
    broker.add_user("anna", "secret")
    assert refusal(broker, "anna") == "access to vhost '/' refused for user 'anna'"


def test_two_users_with_one_password_have_different_hashes() -> None:
    broker = new_broker()
    assert broker.add_user("a", "secret").password_hash != broker.add_user("b", "secret").password_hash


def test_a_change_of_permissions_empties_the_route_caches() -> None:
    broker = new_broker()
    cache: dict[bytes, object] = {b"route": object()}
    broker.vhosts["/"].route_caches["guest"] = cache
    broker.set_permission(broker.users["guest"], "/", Permission(write=""))
    assert cache == {}


# Connections


def test_an_admitted_connection_is_counted_until_it_is_dismissed() -> None:
    broker = new_broker()
    connection = admitted(broker)
    assert connection.vhost is broker.vhosts["/"]
    assert broker.connections == broker.vhosts["/"].connections == {connection}
    broker.dismiss(connection)
    assert broker.connections == broker.vhosts["/"].connections == set()


def test_a_connection_that_was_never_admitted_may_be_dismissed() -> None:
    new_broker().dismiss(new_connection())


def test_a_dismissed_connection_takes_its_exclusive_queues_along() -> None:
    broker = new_broker()
    owner, vhost = admitted(broker), broker.vhosts["/"]
    for name in ("a", "b"):
        new_queue(vhost, name, owner=owner, connection=owner)
    new_queue(vhost, "c")
    broker.dismiss(owner)
    assert list(vhost.queues) == ["c"]
    assert owner.exclusive_queues == set()


def test_the_node_may_be_full() -> None:
    broker = new_broker(connection_max=1)
    first = admitted(broker)
    assert refusal(broker) == "connection refused: node connection limit (1) is reached"
    broker.dismiss(first)
    admitted(broker)


def test_the_vhost_may_be_full() -> None:
    broker = new_broker()
    broker.vhosts["/"].set_limit("max-connections", 1)
    admitted(broker)
    assert refusal(broker) == "access to vhost '/' refused for user 'guest': connection limit (1) is reached"


def test_the_vhost_may_be_missing() -> None:
    assert refusal(new_broker(), vhost="nowhere") == "vhost nowhere not found"


def test_the_user_may_have_all_the_connections_he_may_have() -> None:
    broker = new_broker()
    broker.set_user_limit(broker.users["guest"], "max-connections", 1)
    broker.set_permission(broker.add_user("anna", ""), "/", Permission())
    admitted(broker)
    admitted(broker, "anna")
    assert refusal(broker) == "connection refused for user 'guest': user connection limit (1) is reached"


def test_the_limits_are_checked_in_rabbitmqs_order() -> None:
    broker = new_broker(connection_max=0)
    vhost, guest = broker.vhosts["/"], broker.users["guest"]
    vhost.set_limit("max-connections", 0)
    broker.set_user_limit(guest, "max-connections", 0)
    guest.permissions.clear()
    assert "node connection limit" in refusal(broker, vhost="nowhere")
    broker.config = Config()
    assert "not found" in refusal(broker, vhost="nowhere")
    assert "refused for user 'guest': connection limit" in refusal(broker)
    vhost.clear_limit("max-connections")
    assert "user connection limit" in refusal(broker)
    broker.clear_user_limit(guest, "max-connections")
    assert refusal(broker) == "access to vhost '/' refused for user 'guest'"


def test_a_refused_connection_counts_for_nothing() -> None:
    broker = new_broker()
    refusal(broker, vhost="nowhere")
    assert broker.connections == set()


# Work that was put off


def test_backlogs_are_handed_out_portion_by_portion() -> None:
    broker = new_broker()
    queues = [new_queue(broker.vhosts["/"], name) for name in ("a", "b")]
    message = new_message(b"x")
    for queue in queues:
        for _ in range(2 * DRAIN_MESSAGES_MAX + 1):
            queue.push(message)
    takers = [Taker(queue).start() for queue in queues]
    assert [len(taker.taken) for taker in takers] == [DRAIN_MESSAGES_MAX] * 2
    assert broker.drain_on()
    assert [len(taker.taken) for taker in takers] == [2 * DRAIN_MESSAGES_MAX] * 2
    assert not broker.drain_on()
    assert [len(taker.taken) for taker in takers] == [2 * DRAIN_MESSAGES_MAX + 1] * 2
    assert not broker.undrained


def test_a_backlog_of_a_deleted_queue_is_forgotten() -> None:
    broker = new_broker()
    queue = new_queue(broker.vhosts["/"])
    message = new_message(b"x")
    for _ in range(DRAIN_MESSAGES_MAX + 1):
        queue.push(message)
    taker = Taker(queue).start()
    broker.vhosts["/"].remove_queue(queue)
    assert not broker.drain_on()
    assert len(taker.taken) == DRAIN_MESSAGES_MAX


def test_without_backlogs_there_is_nothing_to_hand_out() -> None:
    assert not new_broker().drain_on()


def test_the_first_user_has_the_tags_and_permissions_that_the_configuration_says() -> None:
    broker = new_broker(
        default_user="anna",
        default_user_tags="monitoring management",
        default_permissions_configure="^a",
        default_permissions_write="^b",
        default_permissions_read="^c",
    )
    user = broker.users["anna"]
    assert user.tags == {"monitoring", "management"}
    assert user.permissions["/"] == Permission("^a", "^b", "^c")
