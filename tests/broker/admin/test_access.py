from __future__ import annotations

import hashlib

import pytest

from amqp_broker.amqp.errors import AccessRefused, InvalidParameter
from amqp_broker.broker.admin.access import (
    HASHING_ALGORITHMS,
    SHA256,
    Permission,
    User,
    decode_hash,
    encode_hash,
    hash_password,
)


def test_a_permission_permits_everything_by_default() -> None:
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


def test_a_user_accepts_only_the_right_password() -> None:
    user = User("anna", hash_password(b"secret", b"salt"))
    assert user.accepts(b"secret")
    assert not user.accepts(b"Secret")
    assert not user.accepts(b"")


def test_a_user_without_a_password_cannot_log_in() -> None:
    assert not User("anna").accepts(b"")
    assert not User("anna").accepts(b"anything")


def test_an_empty_password_is_never_accepted() -> None:
    assert not User("anna", hash_password(b"", b"salt")).accepts(b"")


def test_any_permission_opens_a_vhost_even_one_that_permits_nothing() -> None:
    user = User("anna", permissions={"/": Permission("", "", "")})
    assert user.can_open("/")
    assert not user.can_open("other")


def test_a_permitted_action_raises_no_error() -> None:
    User("anna", permissions={"/": Permission(write="^q$")}).require("write", "/", "queue", "q")


def test_a_forbidden_action_is_refused_in_rabbitmqs_words() -> None:
    user = User("anna", permissions={"/": Permission(write="^q$")})
    with pytest.raises(AccessRefused) as caught:
        user.require("write", "/", "exchange", "x")
    assert str(caught.value) == "write access to exchange 'x' in vhost '/' refused for user 'anna'"


def test_without_permissions_in_the_vhost_everything_is_refused() -> None:
    with pytest.raises(AccessRefused):
        User("anna", permissions={"other": Permission()}).require("read", "/", "queue", "q")


def test_permissions_name_the_default_exchange() -> None:
    User("anna", permissions={"/": Permission(write="^amq\\.default$")}).require("write", "/", "exchange", "")
    with pytest.raises(AccessRefused, match=r"exchange 'amq\.default'"):
        User("anna", permissions={"/": Permission(write="^q$")}).require("write", "/", "exchange", "")


# Hashes from RabbitMQ


# Made by `rabbitmqctl eval 'rabbit_password:hash(Module, <<"secret">>)'` of RabbitMQ 3.10.8.
MADE_BY_RABBITMQ = {
    "rabbit_password_hashing_sha256": "Giw63lShgFR5diJNkk6f9kPQBuKq0e98XinXwbVu6jWnq4/9",
    "rabbit_password_hashing_sha512": "M05cggbUavtKlLq2+n0qkuRUad5xIaTtU9ptU4DsgdpYM7"
    "690XCl5As6YB2KLU/uEkuAWUTiY1pMmLWmXkzGipah1XI=",
    "rabbit_password_hashing_md5": "rd1dYGgH13f9v86Zlv1GkvB6k4M=",
}


def test_each_of_rabbitmqs_algorithms_is_tested() -> None:
    assert MADE_BY_RABBITMQ.keys() == HASHING_ALGORITHMS.keys()


@pytest.mark.parametrize(("algorithm", "text"), MADE_BY_RABBITMQ.items())
def test_a_hash_from_rabbitmq_accepts_only_its_password(algorithm: str, text: str) -> None:
    user = User("anna", decode_hash(text, algorithm), hashing_algorithm=algorithm)
    assert user.accepts(b"secret")
    assert not user.accepts(b"Secret")
    assert encode_hash(user.password_hash) == text


@pytest.mark.parametrize("algorithm", HASHING_ALGORITHMS)
def test_a_hash_is_valid_only_for_its_own_algorithm(algorithm: str) -> None:
    for other in HASHING_ALGORITHMS.keys() - {algorithm}:
        assert not User("anna", hash_password(b"secret", b"salt", algorithm), hashing_algorithm=other).accepts(
            b"secret"
        )


def test_with_an_empty_hash_no_password_is_accepted() -> None:
    assert decode_hash("") == b""
    assert encode_hash(b"") == ""


@pytest.mark.parametrize(
    ("text", "algorithm", "problem"),
    [
        ("no base64!", SHA256, "password hash is not base64"),
        ("YWJj\n", SHA256, "password hash is not base64"),
        ("YWJ", SHA256, "password hash is not base64"),
        ("é", SHA256, "password hash is not base64"),
        ("YWJj", SHA256, f"password hash has 3 octets; salt and hash of {SHA256} have 36"),
        (
            encode_hash(bytes(36)),
            "rabbit_password_hashing_md5",
            "password hash has 36 octets; salt and hash of .* have 20",
        ),
        (encode_hash(bytes(36)), "rot13", "hashing algorithm 'rot13' is none of rabbit_password_hashing_sha256, .*"),
    ],
)
def test_an_invalid_hash_is_refused_with_the_reason(text: str, algorithm: str, problem: str) -> None:
    with pytest.raises(InvalidParameter, match=f"^{problem}$"):
        decode_hash(text, algorithm)


def test_the_representation_of_a_user_has_no_password_hash() -> None:
    assert "salt" not in repr(User("anna", hash_password(b"secret", b"salt")))
