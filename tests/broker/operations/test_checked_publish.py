"""Publishing without a channel; test_basic_publish_checks.py tests the same checks on channels."""

from __future__ import annotations

import pytest

from amqp_broker.amqp.errors import AccessRefused, NotFound, PreconditionFailed
from amqp_broker.amqp.message import Properties
from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.operations.checked_publish import bad_expiration, publish
from amqp_broker.broker.vhost import VHost
from tests.broker_parts import CollectingConsumer, new_broker, new_connection, new_queue

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
    collector = CollectingConsumer(new_queue(vhost)).start()
    assert send(vhost) == ["q"]
    assert collector.bodies == [HELLO]
    assert send(vhost, key="none") == []


def test_a_message_may_expire(vhost: VHost) -> None:
    queue = new_queue(vhost)
    send(vhost, expiration="100")
    vhost.broker.tick(99)
    assert queue.ready_count == 1
    vhost.broker.tick(100)
    assert queue.ready_count == 0


def test_an_observer_hears_of_the_publish_and_its_confirm(vhost: VHost) -> None:
    new_queue(vhost)
    heard: list[str] = []
    vhost.tracing.observe(lambda event, name, facts, message, body: heard.append(f"{event}.{name}"))
    send(vhost)
    assert heard == ["publish.", "confirm."]


def test_a_body_that_is_too_large_is_refused(vhost: VHost) -> None:
    with pytest.raises(PreconditionFailed, match="is larger than configured max size 16777216"):
        send(vhost, body=b"x" * 16_777_217)


def test_publishing_requires_permission_to_write(vhost: VHost) -> None:
    vhost.broker.users.set_permission(vhost.broker.users["guest"], "/", Permission(write="^$"))
    with pytest.raises(AccessRefused):
        send(vhost, "none")


def test_a_missing_exchange_is_refused(vhost: VHost) -> None:
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
def test_an_invalid_expiration_is_reported_in_erlangs_words(expiration: str, reason: str) -> None:
    assert reason in str(bad_expiration(expiration))


def test_a_refusing_queue_is_reported(vhost: VHost) -> None:
    new_queue(vhost, arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    connection = new_connection()
    connection.user = vhost.broker.users["guest"]
    assert not publish(vhost, connection, "", "q", Properties(), HELLO).is_taken
