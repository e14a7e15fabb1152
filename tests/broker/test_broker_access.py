"""Users, permissions and vhosts come and go while clients are connected."""

from __future__ import annotations

import pytest

from amqp_broker.broker.access import SHA256, Permission, TopicPermission, User, hash_password
from amqp_broker.broker.broker import Broker
from amqp_broker.errors import AccessRefused, DoesNotExist, InvalidParameter
from tests.taker import bind, new_broker, new_exchange, new_queue, push


@pytest.fixture
def broker() -> Broker:
    return new_broker()


def test_a_permission_counts_at_once(broker: Broker) -> None:
    guest = broker.user("guest")
    broker.set_permission(guest, "/", Permission(write="^a$"))
    with pytest.raises(AccessRefused):
        guest.require("write", "/", "exchange", "b")
    broker.clear_permission(guest, "/")
    assert not guest.can_open("/")


@pytest.mark.parametrize("change", ["set", "clear", "set topics", "clear topics"])
def test_every_change_of_permissions_empties_the_route_caches(broker: Broker, change: str) -> None:
    guest = broker.user("guest")
    cache = broker.vhosts["/"].route_caches.setdefault("guest", {b"method": "route"})
    if change == "set":
        broker.set_permission(guest, "/", Permission())
    elif change == "clear":
        broker.clear_permission(guest, "/")
    elif change == "set topics":
        broker.set_topic_permission(guest, "/", "amq.topic", TopicPermission())
    else:
        broker.clear_topic_permission(guest, "/")
    assert cache == {}


def test_a_pattern_that_is_none_changes_no_permission(broker: Broker) -> None:
    guest = broker.user("guest")
    with pytest.raises(InvalidParameter):
        broker.set_permission(guest, "/", Permission(read="["))
    with pytest.raises(InvalidParameter):
        broker.set_topic_permission(guest, "/", "amq.topic", TopicPermission(write="["))
    assert guest.permissions == {"/": Permission()}
    assert guest.topic_permissions == {}


def test_a_permission_needs_its_user_and_its_vhost(broker: Broker) -> None:
    """In the order of rabbit_auth_backend_internal.erl, as 3.10 did: the pattern, the user, the vhost."""
    guest, nobody = broker.user("guest"), User("nobody")
    no_user, no_vhost = "User 'nobody' does not exist", "Virtual host 'nowhere' does not exist"
    for user, vhost, text in ((nobody, "/", no_user), (guest, "nowhere", no_vhost), (nobody, "nowhere", no_user)):
        with pytest.raises(DoesNotExist, match=text):
            broker.set_permission(user, vhost, Permission())
        with pytest.raises(DoesNotExist, match=text):
            broker.clear_permission(user, vhost)
        with pytest.raises(DoesNotExist, match=text):
            broker.set_topic_permission(user, vhost, "x", TopicPermission())
        with pytest.raises(DoesNotExist, match=text):
            broker.clear_topic_permission(user, vhost)
    with pytest.raises(InvalidParameter):
        broker.set_permission(nobody, "nowhere", Permission("["))
    assert (nobody.permissions, list(guest.permissions)) == ({}, ["/"])


def test_topic_permissions_are_cleared_for_one_exchange_or_for_all_of_a_vhost(broker: Broker) -> None:
    guest = broker.user("guest")
    broker.add_vhost("blue")
    for vhost, exchange in (("/", "a"), ("/", "b"), ("/", "c"), ("blue", "a")):
        broker.set_topic_permission(guest, vhost, exchange, TopicPermission("", ""))
    broker.clear_topic_permission(guest, "/", "a")
    assert list(guest.topic_permissions) == [("/", "b"), ("/", "c"), ("blue", "a")]
    broker.clear_topic_permission(guest, "/")
    assert list(guest.topic_permissions) == [("blue", "a")]


def test_a_changed_password_is_the_one_that_fits(broker: Broker) -> None:
    guest = broker.user("guest")
    broker.change_password(guest, "new")
    assert guest.accepts(b"new")
    assert not guest.accepts(b"guest")


def test_tags_are_set_without_the_blanks_around_them(broker: Broker) -> None:
    broker.set_tags(broker.user("guest"), ["monitoring", " management "])
    assert broker.user("guest").tags == {"monitoring", "management"}


def test_what_is_not_there_cannot_be_deleted(broker: Broker) -> None:
    with pytest.raises(DoesNotExist, match="User 'nope' does not exist"):
        broker.delete_user("nope")
    with pytest.raises(DoesNotExist, match="Virtual host 'nope' does not exist"):
        broker.delete_vhost("nope")


def test_a_deleted_vhost_takes_queues_exchanges_and_permissions_with_it(broker: Broker) -> None:
    guest = broker.user("guest")
    vhost = broker.add_vhost("blue")
    broker.set_permission(guest, "blue", Permission())
    broker.set_topic_permission(guest, "blue", "amq.topic", TopicPermission())
    queue = new_queue(vhost, arguments_={"x-expires": 1000})
    bind(new_exchange(vhost, "x"), queue, vhost)
    push(queue, b"1")
    broker.delete_vhost("blue")
    assert list(broker.vhosts) == ["/"]
    assert queue.is_deleted
    assert (guest.can_open("blue"), guest.topic_permissions) == (False, {})
    broker.tick(broker.now + 2000)
    assert broker.add_vhost("blue").queues == {}


def test_a_user_limit_is_set_and_cleared(broker: Broker) -> None:
    guest = broker.user("guest")
    broker.set_user_limit(guest, "max-channels", 1)
    assert guest.limits["max-channels"] == 1
    broker.clear_user_limit(guest, "max-channels")
    assert guest.limits["max-channels"] is None
    with pytest.raises(InvalidParameter):
        broker.set_user_limit(guest, "max-queues", 1)


def test_a_password_is_changed_set_as_a_hash_and_taken_away(broker: Broker) -> None:
    user = broker.add_user("anna", "first")
    md5 = "rabbit_password_hashing_md5"
    broker.set_password_hash(user, hash_password(b"second", b"salt", md5), md5)
    assert user.accepts(b"second")
    assert not user.accepts(b"first")
    broker.change_password(user, "third")
    assert (user.accepts(b"third"), user.hashing_algorithm) == (True, SHA256)
    broker.set_password_hash(user, b"")
    assert not user.accepts(b"third")


def test_a_user_is_put_with_the_hash_of_another_broker_and_keeps_what_he_may(broker: Broker) -> None:
    md5 = "rabbit_password_hashing_md5"
    user = broker.put_user("u", hash_password(b"one", b"salt", md5), md5, ["a", " b "])
    broker.set_permission(user, "/", Permission())
    broker.set_user_limits(user, {"max-channels": 3})
    assert (user.tags, user.accepts(b"one")) == ({"a", "b"}, True)
    assert broker.put_user("u", hash_password(b"two", b"salt"), SHA256, []) is user
    assert (user.tags, user.accepts(b"one"), user.accepts(b"two")) == (frozenset(), False, True)
    assert (user.can_open("/"), user.limits.given) == (True, {"max-channels": 3})


def test_all_limits_of_a_user_are_replaced_or_none(broker: Broker) -> None:
    user = broker.user("guest")
    broker.set_user_limits(user, {"max-channels": 3})
    with pytest.raises(InvalidParameter):
        broker.set_user_limits(user, {"max-connections": 3, "foo": 1})
    assert user.limits.given == {"max-channels": 3}


def test_a_cluster_has_the_name_of_its_node_until_it_is_given_one(broker: Broker) -> None:
    assert broker.cluster_name == broker.node
    broker.global_parameters.set("cluster_name", "c")
    assert broker.cluster_name == "c"


def test_no_two_brokers_have_one_id(broker: Broker) -> None:
    assert broker.cluster_id == broker.cluster_id
    assert len(broker.cluster_id) == len("rabbitmq-cluster-id-") + 22
    assert broker.global_parameters["internal_cluster_id"] == broker.cluster_id
