"""Permissions that remote backends grant."""

from __future__ import annotations

import pytest

from amqp_broker.amqp.errors import AccessRefused, NotAllowed
from amqp_broker.broker.admin.access import Permission, User
from amqp_broker.broker.backends.questions import Answers
from amqp_broker.broker.backends.remote_user import RemoteUser
from tests.broker.backends.scripted import AWAY, DENIED, ScriptedBackend, answered
from tests.broker_parts import new_broker

OWN = {"anna": User("anna", permissions={"/": Permission("", "^a", ".*")})}


def user(*backends: ScriptedBackend, users: dict[str, User] | None = None) -> RemoteUser:
    return RemoteUser("anna", ("management",), backends, users, Answers(), "192.0.2.1")


def test_each_backend_has_to_grant_a_permission() -> None:
    allows, denies = ScriptedBackend(name="one"), ScriptedBackend(DENIED, "two")
    one = user(allows)
    assert answered(lambda: one.can_open("/"))
    both = user(allows, denies)
    assert not answered(lambda: both.can_open("/"))
    with pytest.raises(NotAllowed, match=r"access to vhost '/' refused for user 'anna'$"):
        answered(lambda: both.require_vhost("/"))
    with pytest.raises(AccessRefused, match=r"write access to exchange 'amq\.default' in vhost '/' refused"):
        answered(lambda: both.require("write", "/", "exchange", ""))
    assert dict(denies.asked[-1].parameters)["name"] == "amq.default"


def test_an_error_ends_the_text() -> None:
    away = user(ScriptedBackend(AWAY, "rabbit_auth_backend_http"))
    ending = "for user 'anna', backend rabbit_auth_backend_http returned an error: timeout$"
    with pytest.raises(NotAllowed, match=ending):
        answered(lambda: away.require_vhost("/"))
    with pytest.raises(AccessRefused, match=ending):
        answered(lambda: away.require("read", "/", "queue", "one"))
    vhost = new_broker().vhosts["/"]
    with pytest.raises(AccessRefused, match=ending):
        answered(lambda: away.require_topic("read", vhost, "amq.topic", "a"))
    assert not answered(lambda: away.can_open("/"))


def test_the_brokers_own_permissions_count_as_well() -> None:
    backend = ScriptedBackend()
    both = user(backend, users=OWN)
    assert both.is_internal
    answered(lambda: both.require("write", "/", "queue", "abc"))
    asked = len(backend.asked)
    with pytest.raises(AccessRefused):
        both.require("write", "/", "queue", "b")
    assert not both.can_open("another")
    assert len(backend.asked) == asked
    deleted = user(backend, users={})
    assert not deleted.can_open("/")


def test_topics_are_asked_with_variables() -> None:
    backend = ScriptedBackend()
    one = user(backend)
    assert answered(lambda: one.may_topic("write", "/", "amq.topic", "a.b"))
    assert backend.asked[0].kind == "topic"
    assert backend.asked[0].parameters[-3:] == (
        ("routing_key", "a.b"),
        ("variable_map.username", "anna"),
        ("variable_map.vhost", "/"),
    )
