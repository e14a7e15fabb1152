from __future__ import annotations

import hashlib

import pytest

from amqp_broker.broker.access import Permission, User, hash_password
from amqp_broker.errors import AccessRefused


def test_a_permission_permits_everything_unless_it_says_otherwise() -> None:
    assert all(Permission().allows(action, "anything") for action in ("configure", "write", "read"))


@pytest.mark.parametrize("action", ["configure", "write", "read"])
def test_each_action_has_its_own_pattern(action: str) -> None:
    permission = Permission(**{"configure": "", "write": "", "read": "", action: ".*"})
    allowed = [other for other in ("configure", "write", "read") if permission.allows(other, "q")]
    assert allowed == [action]


def test_the_empty_pattern_permits_nothing() -> None:
    assert not Permission(read="").allows("read", "q")
    assert not Permission(read="").allows("read", "")


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("orders", "my-orders-2", True),
        ("^orders", "my-orders", False),
        ("^orders$", "orders", True),
        ("^orders$", "orders2", False),
        ("^(a|b)$", "b", True),
        ("^$", "amq.default", False),
    ],
)
def test_patterns_are_not_anchored(pattern: str, name: str, expected: bool) -> None:
    assert Permission(write=pattern).allows("write", name) is expected


def test_a_password_is_kept_as_salt_and_sha_256_as_in_rabbitmqs_definitions() -> None:
    assert hash_password(b"secret", b"salt") == b"salt" + hashlib.sha256(b"salt" + b"secret").digest()


def test_a_user_accepts_his_password_only() -> None:
    user = User("anna", hash_password(b"secret", b"salt"))
    assert user.accepts(b"secret")
    assert not user.accepts(b"Secret")
    assert not user.accepts(b"")


def test_a_user_without_a_password_cannot_log_in() -> None:
    assert not User("anna").accepts(b"")
    assert not User("anna").accepts(b"anything")


def test_an_empty_password_never_fits() -> None:
    assert not User("anna", hash_password(b"", b"salt")).accepts(b"")


def test_any_permission_opens_a_vhost_even_one_that_permits_nothing() -> None:
    user = User("anna", permissions={"/": Permission("", "", "")})
    assert user.can_open("/")
    assert not user.can_open("other")


def test_what_is_permitted_is_required_in_silence() -> None:
    User("anna", permissions={"/": Permission(write="^q$")}).require("write", "/", "queue", "q")


def test_what_is_not_permitted_is_refused_in_rabbitmqs_words() -> None:
    user = User("anna", permissions={"/": Permission(write="^q$")})
    with pytest.raises(AccessRefused) as caught:
        user.require("write", "/", "exchange", "x")
    assert str(caught.value) == "write access to exchange 'x' in vhost '/' refused for user 'anna'"


def test_without_permissions_in_the_vhost_everything_is_refused() -> None:
    with pytest.raises(AccessRefused):
        User("anna", permissions={"other": Permission()}).require("read", "/", "queue", "q")


def test_the_default_exchange_has_a_name_to_be_permitted_by() -> None:
    User("anna", permissions={"/": Permission(write="^amq\\.default$")}).require("write", "/", "exchange", "")
    with pytest.raises(AccessRefused, match=r"exchange 'amq\.default'"):
        User("anna", permissions={"/": Permission(write="^q$")}).require("write", "/", "exchange", "")
