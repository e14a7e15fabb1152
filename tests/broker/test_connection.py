from __future__ import annotations

import pytest

from amqp_broker.broker.connection import Connection
from tests.taker import new_connection


def test_a_connection_is_named_by_its_two_ends() -> None:
    assert Connection("10.0.0.1", 40_000, "10.0.0.2", 5672, 0).name == "10.0.0.1:40000 -> 10.0.0.2:5672"


def test_a_new_connection_has_nobody_logged_in_and_nothing_open() -> None:
    connection = new_connection()
    assert (connection.user, connection.vhost, connection.tls) == (None, None, None)
    assert (connection.client_properties, connection.channels, connection.exclusive_queues) == ({}, {}, set())


def test_two_connections_between_the_same_ends_are_different() -> None:
    assert len({new_connection(), new_connection()}) == 2


def test_closing_is_the_sessions() -> None:
    with pytest.raises(NotImplementedError):
        new_connection().force_close("shutdown", 0)
