"""Limits by RabbitMQ's names. The texts are what `rabbitmqctl set_vhost_limits` of RabbitMQ 3.10 answers."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.broker.limits import user_limits, vhost_limits
from amqp_broker.errors import InvalidParameter


def test_where_nothing_is_set_there_may_be_any_number() -> None:
    limits = vhost_limits()
    assert limits["max-queues"] is None
    assert not limits.is_reached("max-queues", 1_000_000)


def test_a_limit_is_reached_by_as_many_as_it_says() -> None:
    limits = vhost_limits()
    limits.set("max-queues", 2)
    assert limits["max-queues"] == 2
    assert [limits.is_reached("max-queues", count) for count in (1, 2, 3)] == [False, True, True]


def test_0_is_none_at_all() -> None:
    limits = user_limits()
    limits.set("max-channels", 0)
    assert limits.is_reached("max-channels", 0)


@pytest.mark.parametrize("value", [-1, -5])
def test_a_negative_limit_is_none_but_is_listed(value: int) -> None:
    limits = user_limits()
    limits.set("max-connections", value)
    assert limits["max-connections"] is None
    assert not limits.is_reached("max-connections", 10)
    assert limits.given == {"max-connections": value}


def test_a_cleared_limit_is_gone_and_may_be_cleared_again() -> None:
    limits = vhost_limits()
    limits.set("max-connections", 0)
    limits.clear("max-connections")
    limits.clear("max-connections")
    assert limits.given == {}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("max-connections", "x", 'max-connections should be a number, actually was <<"x">>'),
        ("max-queues", 1.5, "max-queues should be a number, actually was 1.5"),
        ("max-queues", True, "max-queues should be a number, actually was true"),
        ("max-channels", 1, 'Unrecognised terms [{<<"max-channels">>,1}] in limits'),
    ],
)
def test_a_limit_that_cannot_be_is_refused_and_changes_nothing(name: str, value: Any, text: str) -> None:
    limits = vhost_limits()
    with pytest.raises(InvalidParameter) as caught:
        limits.set(name, value)
    assert str(caught.value) == text
    assert limits.given == {}


def test_all_limits_are_replaced_or_none() -> None:
    limits = vhost_limits()
    limits.set("max-queues", 1)
    with pytest.raises(InvalidParameter):
        limits.replace({"max-connections": 5, "foo": 1})
    assert limits.given == {"max-queues": 1}
    limits.replace({"max-connections": 5})
    assert limits.given == {"max-connections": 5}


def test_users_have_limits_of_their_own() -> None:
    with pytest.raises(InvalidParameter) as caught:
        user_limits().set("max-queues", 1)
    assert str(caught.value) == 'Unrecognised terms [{<<"max-queues">>,1}] in user-limits'
