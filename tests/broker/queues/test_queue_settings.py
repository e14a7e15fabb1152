"""How arguments, policy and operator policy are merged.

Seen in RabbitMQ 3.10: argument x-max-length 3 with a policy's max-length 2 keeps 2 messages; `rabbit_policy:
effective_definition` of {max-length 2, message-ttl 600000} and the operator's {max-length 1, expires 3600000} is
{expires 3600000, max-length 1, message-ttl 600000}; an argument x-overflow drop-head counts before a policy's
reject-publish; a policy's dead-letter-routing-key goes with an argument's x-dead-letter-exchange.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from amqp_broker.broker.queues.delayed_retries import RetryDelay
from amqp_broker.broker.queues.queue_settings import QueueSettings, effective


def test_without_arguments_and_policies_no_setting_applies() -> None:
    assert effective({}, {}, {}) == QueueSettings()


NUMBERS = [
    ("expires", "expires_ms"),
    ("message-ttl", "message_ttl_ms"),
    ("max-length", "length_max"),
    ("max-length-bytes", "bytes_max"),
    ("delivery-limit", "delivery_limit"),
    ("consumer-timeout", "consumer_timeout_ms"),
]


@pytest.mark.parametrize(("key", "field"), NUMBERS)
def test_the_smallest_of_several_numbers_applies(key: str, field: str) -> None:
    for argument, policy, operator in permutations((1, 2, 3)):
        settings = effective({f"x-{key}": argument}, {key: policy}, {key: operator})
        assert getattr(settings, field) == 1


@pytest.mark.parametrize(("key", "field"), NUMBERS)
def test_a_number_may_come_from_the_argument_or_either_policy(key: str, field: str) -> None:
    found = [effective({f"x-{key}": 1}, {}, {}), effective({}, {key: 1}, {}), effective({}, {}, {key: 1})]
    assert [getattr(settings, field) for settings in found] == [1, 1, 1]


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("dead-letter-exchange", "dead_letter_exchange"),
        ("dead-letter-routing-key", "dead_letter_routing_key"),
        ("dead-letter-strategy", "dead_letter_strategy"),
        ("overflow", "overflow"),
    ],
)
def test_the_name_in_an_argument_overrides_the_policy(key: str, field: str) -> None:
    assert getattr(effective({f"x-{key}": "argument"}, {key: "policy"}, {}), field) == "argument"
    assert getattr(effective({}, {key: "policy"}, {}), field) == "policy"


def test_the_policy_overrides_the_type_of_delayed_retries_and_the_smaller_delays_apply() -> None:
    arguments = {"x-delayed-retry-type": "all", "x-delayed-retry-min": 5, "x-delayed-retry-max": 50}
    policy = {"delayed-retry-type": "failed", "delayed-retry-min": 10, "delayed-retry-max": 20}
    assert effective(arguments, {}, {}).retry_delay == RetryDelay("all", 5, 50)
    assert effective(arguments, policy, {}).retry_delay == RetryDelay("failed", 5, 20)
    assert effective(arguments, {"delayed-retry-type": "disabled"}, {}).retry_delay is None


def test_an_operator_may_lengthen_the_shortest_delay_and_shorten_the_longest() -> None:
    policy = {"delayed-retry-type": "failed", "delayed-retry-min": 10, "delayed-retry-max": 50}
    operator = {"delayed-retry-type": "all", "delayed-retry-min": 20, "delayed-retry-max": 40}
    assert effective({}, policy, operator).retry_delay == RetryDelay("all", 20, 40)
    assert effective({}, operator, policy).retry_delay == RetryDelay("failed", 20, 40)


def test_a_delay_that_is_no_integer_is_ignored() -> None:
    arguments = {"x-delayed-retry-type": "all", "x-delayed-retry-min": "5", "x-delayed-retry-max": True}
    assert effective(arguments, {}, {}).retry_delay is None
    assert effective(arguments, {"delayed-retry-min": 7}, {}).retry_delay == RetryDelay("all", 7, 7)


def test_keys_are_merged_independently() -> None:
    settings = effective({"x-dead-letter-exchange": "dlx"}, {"dead-letter-routing-key": "key"}, {})
    assert (settings.dead_letter_exchange, settings.dead_letter_routing_key) == ("dlx", "key")


def test_the_overflow_of_an_operator_policy_overrides_the_policy_but_not_the_argument() -> None:
    policy, operator = {"overflow": "drop-head"}, {"overflow": "reject-publish"}
    assert effective({}, policy, operator).overflow == "reject-publish"
    assert effective({"x-overflow": "drop-head"}, policy, operator).overflow == "drop-head"


@pytest.mark.parametrize(
    ("policy", "operator", "expected"),
    [
        ({"overflow": "drop-head"}, {}, "drop-head"),
        ({}, {"overflow": "drop-head"}, "drop-head"),
        ({"overflow": "reject-publish"}, {"overflow": "drop-head"}, "drop-head"),
        ({"max-length": 5}, {}, "reject-publish"),
    ],
)
def test_policies_determine_the_overflow_of_a_quorum_queue(
    policy: dict[str, object], operator: dict[str, object], expected: str
) -> None:
    """Seen in RabbitMQ 3.10.8, 4.0.5 and 4.3.6."""
    arguments = {"x-queue-type": "quorum", "x-overflow": "reject-publish"}
    assert effective(arguments, policy, operator).overflow == expected


@pytest.mark.parametrize(
    ("argument", "policy", "expected"), [(-1, 5, 5), (5, -1, 5), (-1, -1, -1), (0, -1, 0), (3, 5, 3)]
)
def test_a_negative_delivery_limit_yields_to_any_other(argument: int, policy: int, expected: int) -> None:
    assert effective({"x-delivery-limit": argument}, {"delivery-limit": policy}, {}).delivery_limit == expected


def test_overflow_has_no_effect_without_a_length_limit() -> None:
    assert not effective({}, {"overflow": "reject-publish"}, {}).rejects_publish
    assert effective({}, {"overflow": "reject-publish", "max-length": 1}, {}).rejects_publish
    assert not effective({}, {"max-length": 1}, {}).rejects_publish


def test_a_number_that_is_none_stands_for_no_limit() -> None:
    """No version of RabbitMQ validates x-delivery-limit, and none before 4.3 x-consumer-timeout."""
    arguments = {"x-delivery-limit": "odd", "x-consumer-timeout": "odd"}
    settings = effective(arguments, {}, {})
    assert (settings.delivery_limit, settings.consumer_timeout_ms) == (-1, 0)
    settings = effective(arguments, {"delivery-limit": 5, "consumer-timeout": 1000}, {})
    assert (settings.delivery_limit, settings.consumer_timeout_ms) == (5, 1000)
