"""Publishing without a channel; tests/session/test_publishing.py has what is checked for channels, too."""

from __future__ import annotations

import pytest

from amqp_broker.broker.access import Permission
from amqp_broker.broker.publishing import bad_expiration, publish
from amqp_broker.broker.vhost import VHost
from amqp_broker.errors import AccessRefused, NotFound, PreconditionFailed
from amqp_broker.message import Properties
from tests.taker import Taker, new_broker, new_connection, new_queue

HELLO = b"hello"


@pytest.fixture
def vhost() -> VHost:
    return new_broker().vhosts["/"]


def send(vhost: VHost, exchange: str = "", key: str = "q", body: bytes = HELLO, **properties: object) -> list[str]:
    connection = new_connection()
    connection.user = vhost.broker.users["guest"]
    published = publish(vhost, connection, exchange, key, Properties(**properties), body)
    assert published.is_taken
    return [queue.name for queue in published.queues]


def test_a_message_goes_to_its_queues(vhost: VHost) -> None:
    taker = Taker(new_queue(vhost)).start()
    assert send(vhost) == ["q"]
    assert taker.bodies == [HELLO]
    assert send(vhost, key="none") == []


def test_the_body_must_not_be_too_large(vhost: VHost) -> None:
    with pytest.raises(PreconditionFailed, match="is larger than configured max size 16777216"):
        send(vhost, body=b"x" * 16_777_217)


def test_the_user_must_be_allowed_to_write(vhost: VHost) -> None:
    vhost.broker.set_permission(vhost.broker.users["guest"], "/", Permission(write="^$"))
    with pytest.raises(AccessRefused):
        send(vhost, "none")


def test_the_exchange_must_be_there(vhost: VHost) -> None:
    with pytest.raises(NotFound):
        send(vhost, "none")


@pytest.mark.parametrize(
    ("expiration", "reason"),
    [
        ("x", "no_integer"),
        ("+-1", "no_integer"),
        ("1x", 'leftover_string,"x"'),
        ("-1", "value_negative,-1"),
        ("315360000001", "value_too_large,315360000001"),
    ],
)
def test_what_is_wrong_with_an_expiration_is_told_as_erlang_does(expiration: str, reason: str) -> None:
    assert reason in str(bad_expiration(expiration))


def test_a_queue_that_refuses_is_told_of(vhost: VHost) -> None:
    new_queue(vhost, arguments_={"x-max-length": 0, "x-overflow": "reject-publish"})
    connection = new_connection()
    connection.user = vhost.broker.users["guest"]
    assert not publish(vhost, connection, "", "q", Properties(), HELLO).is_taken
