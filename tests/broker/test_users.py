"""Users, permissions and vhosts come and go while clients are connected."""

from __future__ import annotations

import pytest

from amqp_broker.amqp.errors import AccessRefused, DoesNotExist, InvalidParameter
from amqp_broker.broker.admin.access import SHA256, Permission, TopicPermission, User, hash_password
from amqp_broker.broker.broker import Broker
from tests.broker_parts import bind, new_broker, new_exchange, new_queue, new_route, push


@pytest.fixture
def broker() -> Broker:
    return new_broker()


def test_a_permission_applies_at_once(broker: Broker) -> None:
    guest = broker.users.named("guest")
    broker.users.set_permission(guest, "/", Permission(write="^a$"))
    with pytest.raises(AccessRefused):
        guest.require("write", "/", "exchange", "b")
    broker.users.clear_permission(guest, "/")
    assert not guest.can_open("/")


@pytest.mark.parametrize("change", ["set", "clear", "set topics", "clear topics"])
def test_every_change_of_permissions_empties_the_route_caches(broker: Broker, change: str) -> None:
    guest = broker.users.named("guest")
    vhost = broker.vhosts["/"]
    cache = vhost.route_cache.of("guest")
    cache.update({b"method": new_route(vhost)})
    if change == "set":
        broker.users.set_permission(guest, "/", Permission())
    elif change == "clear":
        broker.users.clear_permission(guest, "/")
    elif change == "set topics":
        broker.users.set_topic_permission(guest, "/", "amq.topic", TopicPermission())
    else:
        broker.users.clear_topic_permission(guest, "/")
    assert cache == {}


def test_an_invalid_pattern_changes_no_permission(broker: Broker) -> None:
    guest = broker.users.named("guest")
    with pytest.raises(InvalidParameter):
        broker.users.set_permission(guest, "/", Permission(read="["))
    with pytest.raises(InvalidParameter):
        broker.users.set_topic_permission(guest, "/", "amq.topic", TopicPermission(write="["))
    assert guest.permissions == {"/": Permission()}
    assert guest.topic_permissions == {}


def test_a_permission_needs_its_user_and_its_vhost(broker: Broker) -> None:
    """The order is that of rabbit_auth_backend_internal.erl and of 3.10: the pattern, the user, the vhost."""
    guest, nobody = broker.users.named("guest"), User("nobody")
    no_user, no_vhost = "User 'nobody' does not exist", "Virtual host 'nowhere' does not exist"
    for user, vhost, text in ((nobody, "/", no_user), (guest, "nowhere", no_vhost), (nobody, "nowhere", no_user)):
        with pytest.raises(DoesNotExist, match=text):
            broker.users.set_permission(user, vhost, Permission())
        with pytest.raises(DoesNotExist, match=text):
            broker.users.clear_permission(user, vhost)
        with pytest.raises(DoesNotExist, match=text):
            broker.users.set_topic_permission(user, vhost, "x", TopicPermission())
        with pytest.raises(DoesNotExist, match=text):
            broker.users.clear_topic_permission(user, vhost)
    with pytest.raises(InvalidParameter):
        broker.users.set_permission(nobody, "nowhere", Permission("["))
    assert (nobody.permissions, list(guest.permissions)) == ({}, ["/"])


def test_topic_permissions_are_cleared_for_one_exchange_or_for_all_of_a_vhost(broker: Broker) -> None:
    guest = broker.users.named("guest")
    broker.add_vhost("blue")
    for vhost, exchange in (("/", "a"), ("/", "b"), ("/", "c"), ("blue", "a")):
        broker.users.set_topic_permission(guest, vhost, exchange, TopicPermission("", ""))
    broker.users.clear_topic_permission(guest, "/", "a")
    assert list(guest.topic_permissions) == [("/", "b"), ("/", "c"), ("blue", "a")]
    broker.users.clear_topic_permission(guest, "/")
    assert list(guest.topic_permissions) == [("blue", "a")]


def test_only_the_new_password_is_accepted_after_a_change(broker: Broker) -> None:
    guest = broker.users.named("guest")
    broker.users.change_password(guest, "new")
    assert guest.accepts(b"new")
    assert not guest.accepts(b"guest")


def test_tags_are_set_without_the_blanks_around_them(broker: Broker) -> None:
    broker.users.set_tags(broker.users.named("guest"), ["monitoring", " management "])
    assert broker.users.named("guest").tags == ("monitoring", "management")


def test_missing_objects_cannot_be_deleted(broker: Broker) -> None:
    with pytest.raises(DoesNotExist, match="User 'nope' does not exist"):
        broker.users.delete("nope")
    with pytest.raises(DoesNotExist, match="Virtual host 'nope' does not exist"):
        broker.delete_vhost("nope")


def test_deleting_a_vhost_deletes_its_queues_exchanges_and_permissions(broker: Broker) -> None:
    guest = broker.users.named("guest")
    vhost = broker.add_vhost("blue")
    broker.users.set_permission(guest, "blue", Permission())
    broker.users.set_topic_permission(guest, "blue", "amq.topic", TopicPermission())
    queue = new_queue(vhost, arguments={"x-expires": 1000})
    bind(new_exchange(vhost, "x"), queue, vhost)
    push(queue, b"1")
    broker.delete_vhost("blue")
    assert list(broker.vhosts) == ["/"]
    assert queue.is_deleted
    assert (guest.can_open("blue"), guest.topic_permissions) == (False, {})
    broker.tick(broker.now + 2000)
    assert broker.add_vhost("blue").queues == {}


def test_a_user_limit_is_set_and_cleared(broker: Broker) -> None:
    guest = broker.users.named("guest")
    broker.users.set_limit(guest, "max-channels", 1)
    assert guest.limits["max-channels"] == 1
    broker.users.clear_limit(guest, "max-channels")
    assert guest.limits["max-channels"] is None
    with pytest.raises(InvalidParameter):
        broker.users.set_limit(guest, "max-queues", 1)


def test_a_password_is_changed_set_as_a_hash_and_removed(broker: Broker) -> None:
    user = broker.users.add("anna", "first")
    md5 = "rabbit_password_hashing_md5"
    broker.users.set_password_hash(user, hash_password(b"second", b"salt", md5), md5)
    assert user.accepts(b"second")
    assert not user.accepts(b"first")
    broker.users.change_password(user, "third")
    assert (user.accepts(b"third"), user.hashing_algorithm) == (True, SHA256)
    broker.users.set_password_hash(user, b"", SHA256)
    assert not user.accepts(b"third")


def test_new_passwords_are_hashed_by_the_configured_algorithm() -> None:
    sha512 = "rabbit_password_hashing_sha512"
    broker = new_broker(password_hashing_module=sha512)
    assert broker.users["guest"].hashing_algorithm == sha512
    user = broker.users.put("u", hash_password(b"one", b"salt"), SHA256, [])
    assert (user.accepts(b"one"), user.hashing_algorithm) == (True, SHA256)
    broker.users.change_password(user, "two")
    assert (user.accepts(b"two"), user.hashing_algorithm, len(user.password_hash)) == (True, sha512, 4 + 64)


def test_a_user_keeps_permissions_when_a_hash_from_another_broker_is_set(broker: Broker) -> None:
    md5 = "rabbit_password_hashing_md5"
    user = broker.users.put("u", hash_password(b"one", b"salt", md5), md5, ["a", " b "])
    broker.users.set_permission(user, "/", Permission())
    broker.users.set_limits(user, {"max-channels": 3})
    assert (user.tags, user.accepts(b"one")) == (("a", "b"), True)
    assert broker.users.put("u", hash_password(b"two", b"salt"), SHA256, []) is user
    assert (user.tags, user.accepts(b"one"), user.accepts(b"two")) == ((), False, True)
    assert (user.can_open("/"), user.limits.given) == (True, {"max-channels": 3})


def test_all_limits_of_a_user_are_replaced_or_none(broker: Broker) -> None:
    user = broker.users.named("guest")
    broker.users.set_limits(user, {"max-channels": 3})
    with pytest.raises(InvalidParameter):
        broker.users.set_limits(user, {"max-connections": 3, "foo": 1})
    assert user.limits.given == {"max-channels": 3}


def test_a_cluster_has_the_name_of_its_node_by_default(broker: Broker) -> None:
    assert broker.cluster_name == broker.node
    broker.global_parameters.set("cluster_name", "c")
    assert broker.cluster_name == "c"


def test_two_brokers_have_different_ids(broker: Broker) -> None:
    assert broker.cluster_id == broker.cluster_id
    assert len(broker.cluster_id) == len("rabbitmq-cluster-id-") + 22
    assert broker.global_parameters["internal_cluster_id"] == broker.cluster_id
