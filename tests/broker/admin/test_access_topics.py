"""Topic permissions. The patterns were tried with RabbitMQ 3.10."""

from __future__ import annotations

import pytest

from amqp_broker.amqp.errors import AccessRefused, InvalidParameter
from amqp_broker.broker.admin.access import Permission, TopicPermission, User
from tests.peer import Lab


def user(name: str = "anna", vhost: str = "/", **permission: str) -> User:
    return User(name, topic_permissions={(vhost, "amq.topic"): TopicPermission(**permission)})


def test_every_topic_is_permitted_by_default() -> None:
    assert User("anna").may_topic("write", "/", "amq.topic", "a.b")


def test_a_topic_permission_applies_only_to_its_exchange_and_vhost() -> None:
    anna = user(write="^a$", read="^b$")
    assert anna.may_topic("write", "/", "amq.topic", "a")
    assert not anna.may_topic("write", "/", "amq.topic", "b")
    assert anna.may_topic("read", "/", "amq.topic", "b")
    assert not anna.may_topic("read", "/", "amq.topic", "a")
    assert anna.may_topic("write", "/", "other", "b")
    assert anna.may_topic("write", "other", "amq.topic", "b")


def test_username_and_vhost_are_variables_of_the_pattern() -> None:
    anna = user(vhost="blue", write="^{username}\\.{vhost}\\.")
    assert anna.may_topic("write", "blue", "amq.topic", "anna.blue.x")
    assert not anna.may_topic("write", "blue", "amq.topic", "maria.blue.x")


def test_the_client_id_of_mqtt_is_plain_text() -> None:
    anna = user(write="^{client_id}$")
    assert anna.may_topic("write", "/", "amq.topic", "{client_id}")
    assert not anna.may_topic("write", "/", "amq.topic", "a")


def test_the_empty_pattern_permits_the_empty_routing_key_only() -> None:
    anna = user(write="")
    assert anna.may_topic("write", "/", "amq.topic", "")
    assert not anna.may_topic("write", "/", "amq.topic", "a")


def test_special_characters_in_a_name_are_literal() -> None:
    """rabbit_re.erl (escape, newer than 4.3.0)."""
    assert user("anna(", write="^{username}").may_topic("write", "/", "amq.topic", "anna(")
    assert not user(".*", write="^{username}$").may_topic("write", "/", "amq.topic", "anna")


@pytest.mark.parametrize(("compat", "shown"), [("3.13", ""), ("4.0", "{action} "), ("4.3", "{action} ")])
@pytest.mark.parametrize("action", ["write", "read"])
def test_a_forbidden_action_is_refused_in_rabbitmqs_words(action: str, compat: str, shown: str) -> None:
    with pytest.raises(AccessRefused) as caught:
        user(write="^a$", read="^a$").require_topic(action, Lab(compat=compat).vhost, "amq.topic", "b")
    assert str(caught.value) == (
        f"{shown.format(action=action)}access to topic 'b' in exchange 'amq.topic' in vhost '/' refused for user 'anna'"
    )


@pytest.mark.parametrize(
    "permission",
    [
        Permission(configure="["),
        Permission(write="["),
        Permission(read="["),
        TopicPermission("["),
        TopicPermission("", "["),
    ],
)
def test_an_invalid_pattern_is_refused(permission: Permission | TopicPermission) -> None:
    with pytest.raises(InvalidParameter, match="regular expression '\\[' is invalid"):
        permission.check()


def test_a_deleted_vhost_loses_its_topic_permissions() -> None:
    anna = user(vhost="blue")
    anna.permissions = {"blue": Permission(), "/": Permission()}
    anna.topic_permissions["/", "amq.topic"] = TopicPermission()
    anna.forget_vhost("blue")
    assert (list(anna.permissions), list(anna.topic_permissions)) == (["/"], [("/", "amq.topic")])
