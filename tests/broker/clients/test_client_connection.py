from __future__ import annotations

from tests.broker_parts import new_connection


def test_two_connections_between_the_same_ends_are_different() -> None:
    assert len({new_connection(), new_connection()}) == 2
