"""Merging the definitions of a policy and an operator policy, as RabbitMQ 3.10 does."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.broker.admin.policy_merging import interval_ms, merged


@pytest.mark.parametrize(
    ("policy", "operator", "expected"),
    [
        (
            {"max-length": 2, "message-ttl": 600_000},
            {"max-length": 1, "expires": 3_600_000},
            {"expires": 3_600_000, "max-length": 1, "message-ttl": 600_000},
        ),
        ({"queue-version": 1}, {"queue-version": 2}, {"queue-version": 2}),
        ({"target-group-size": 5}, {"target-group-size": 3}, {"target-group-size": 5}),
        ({"max-in-memory-length": 5}, {"max-in-memory-length": 3}, {"max-in-memory-length": 3}),
        ({}, {}, {}),
    ],
)
def test_the_effective_definition_holds_the_keys_of_both_policies(
    policy: dict[str, Any], operator: dict[str, Any], expected: dict[str, Any]
) -> None:
    definition = merged(policy, operator)
    assert definition == expected
    assert list(definition) == sorted(expected)


@pytest.mark.parametrize(
    ("policy", "operator", "expected"), [(-1, 5, 5), (5, -1, 5), (-1, -1, -1), (0, -1, 0), (3, 5, 3)]
)
def test_a_negative_delivery_limit_means_no_limit(policy: int, operator: int, expected: int) -> None:
    assert merged({"delivery-limit": policy}, {"delivery-limit": operator}) == {"delivery-limit": expected}


@pytest.mark.parametrize(("text", "expected"), [("7D", 7 * 86_400_000), ("2h", 7_200_000), ("0s", None), ("7d", None)])
def test_an_interval_is_a_number_with_a_unit(text: str, expected: int | None) -> None:
    assert interval_ms(text) == expected
