"""Limits by RabbitMQ's names. The texts are those of `rabbitmqctl set_vhost_limits` of RabbitMQ 3.10."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.admin.limits import VHOST_LIMITS, Limits, user_limits


def test_without_a_limit_any_number_is_allowed() -> None:
    limits = Limits("limits", VHOST_LIMITS)
    assert limits["max-queues"] is None
    assert not limits.is_reached("max-queues", 1_000_000)


def test_a_limit_is_reached_at_its_number() -> None:
    limits = Limits("limits", VHOST_LIMITS)
    limits.set("max-queues", 2)
    assert limits["max-queues"] == 2
    assert [limits.is_reached("max-queues", count) for count in (1, 2, 3)] == [False, True, True]


def test_a_limit_of_0_allows_none() -> None:
    limits = user_limits()
    limits.set("max-channels", 0)
    assert limits.is_reached("max-channels", 0)


@pytest.mark.parametrize("value", [-1, -5])
def test_a_negative_limit_allows_any_number_and_is_listed(value: int) -> None:
    limits = user_limits()
    limits.set("max-connections", value)
    assert limits["max-connections"] is None
    assert not limits.is_reached("max-connections", 10)
    assert limits.given == {"max-connections": value}


def test_a_cleared_limit_is_removed_and_may_be_cleared_again() -> None:
    limits = Limits("limits", VHOST_LIMITS)
    limits.set("max-connections", 0)
    limits.clear("max-connections")
    limits.clear("max-connections")
    assert limits.given == {}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("max-connections", "x", 'max-connections should be a number, actually was <<"x">>'),
        ("max-queues", 1.5, "max-queues should be a number, actually was 1.5"),
        ("max-queues", 1 << 63, "max-queues should be a number, actually was 9223372036854775808"),
        ("max-queues", True, "max-queues should be a number, actually was true"),
        ("max-channels", 1, 'Unrecognised terms [{<<"max-channels">>,1}] in limits'),
    ],
)
def test_an_invalid_limit_is_refused_and_changes_nothing(name: str, value: Any, text: str) -> None:
    limits = Limits("limits", VHOST_LIMITS)
    with pytest.raises(InvalidParameter) as caught:
        limits.set(name, value)
    assert str(caught.value) == text
    assert limits.given == {}


def test_all_limits_are_replaced_or_none() -> None:
    limits = Limits("limits", VHOST_LIMITS)
    limits.set("max-queues", 1)
    with pytest.raises(InvalidParameter):
        limits.replace({"max-connections": 5, "foo": 1})
    assert limits.given == {"max-queues": 1}
    limits.replace({"max-connections": 5})
    assert limits.given == {"max-connections": 5}


def test_users_have_their_own_limits() -> None:
    with pytest.raises(InvalidParameter) as caught:
        user_limits().set("max-queues", 1)
    assert str(caught.value) == 'Unrecognised terms [{<<"max-queues">>,1}] in user-limits'
