"""Importing users: their tags, passwords and hashes."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.broker.admin.access import User
from amqp_broker.broker.broker import Broker
from amqp_broker.management.documents.importing import import_
from tests.broker_parts import new_broker
from tests.management.documents.test_importing import reason

# As RabbitMQ 3.5 and 3.6 would have hashed "secret".
MD5 = {"password_hash": "c2FsdBtXapSdh5k2SIGdKDKG5t4="}


@pytest.fixture
def broker() -> Broker:
    return new_broker()


def imported(broker: Broker, *, document: dict[str, Any] | None = None, **user: Any) -> User:
    import_(broker, {**(document or {}), "users": [{"name": "u", "tags": "", **user}]})
    return broker.users["u"]


@pytest.mark.parametrize("tags", ["a,b", " a , b ", ["a", "b"], ["a ", "b"]])
def test_tags_are_an_array_or_a_text_with_commas(broker: Broker, tags: Any) -> None:
    assert imported(broker, tags=tags).tags == ("a", "b")


@pytest.mark.parametrize("tags", ["", []])
def test_empty_tags_mean_no_tags(broker: Broker, tags: Any) -> None:
    assert imported(broker, tags=tags).tags == ()


def test_documents_of_very_old_versions_have_a_key_for_administrators(broker: Broker) -> None:
    users = [{"name": "a", "administrator": "true"}, {"name": "b", "administrator": False}]
    import_(broker, {"users": users})
    assert (broker.users["a"].tags, broker.users["b"].tags) == (("administrator",), ())


def test_a_plain_password_is_hashed(broker: Broker) -> None:
    user = imported(broker, password="sécret")
    assert (user.accepts("sécret".encode()), user.accepts(b""), user.hashing_algorithm[-6:]) == (True, False, "sha256")


@pytest.mark.parametrize("password", [{}, {"password": ""}, {"password_hash": ""}])
def test_a_user_without_a_password_accepts_none(broker: Broker, password: dict[str, Any]) -> None:
    assert not imported(broker, **password).accepts(b"")


@pytest.mark.parametrize(
    ("version", "document"),
    [
        ("md5", {"rabbit_version": "3.5.7"}),
        ("md5", {"rabbitmq_version": "2.8.1"}),
        ("sha256", {"rabbit_version": "3.6.0"}),
        ("sha256", {"rabbit_version": "3.10.8"}),
        ("sha256", {"rabbit_version": 3.5}),
        ("sha256", {}),
    ],
)
def test_the_version_decides_the_algorithm_of_hashes_without_one(
    broker: Broker, version: str, document: dict[str, Any]
) -> None:
    if version == "md5":
        assert imported(broker, document=document, **MD5).hashing_algorithm == "rabbit_password_hashing_md5"
    else:
        assert "sha256 have 36" in reason(broker, {**document, "users": [{"name": "u", "tags": "", **MD5}]})


def test_hashes_and_passwords_without_an_algorithm_have_the_configured_one() -> None:
    broker = new_broker(password_hashing_module="rabbit_password_hashing_md5")
    assert imported(broker, password="x").hashing_algorithm == "rabbit_password_hashing_md5"
    assert imported(broker, document={"rabbit_version": "3.8.2"}, **MD5).hashing_algorithm[-3:] == "md5"
    assert "sha256 have 36" in reason(broker, {"rabbit_version": "3.6.0", "users": [{"name": "u", "tags": "", **MD5}]})


def test_an_existing_user_keeps_the_permissions(broker: Broker) -> None:
    user = broker.users["guest"]
    import_(broker, {"users": [{"name": "guest", "tags": ["x"], "password": "new", "limits": {"max-channels": 5}}]})
    assert broker.users["guest"] is user
    assert (user.accepts(b"new"), user.can_open("/"), user.tags) == (True, True, ("x",))
    import_(broker, {"users": [{"name": "guest", "tags": ["x"], "password": "new"}]})
    assert user.limits.given == {"max-channels": 5}
