"""The policies that apply to a queue or exchange, and those that are refused.

The texts are those of RabbitMQ 3.10's rabbitmqctl behind "Validation failed". Later versions added: queue types in
apply-to (3.12), a negative delivery-limit for no limit (4.0), overflow in operator policies (4.0).
"""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp.errors import DoesNotExist, InvalidParameter
from amqp_broker.broker.admin.policies import (
    OPERATOR_KEYS,
    POLICY_VALUES,
    UNSUPPORTED,
    Policies,
    Policy,
    check,
    effective_definition,
)
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.vhost_policies import known_keys
from amqp_broker.settings.profiles import PROFILES
from tests.broker_parts import new_exchange, new_queue, new_vhost


def policy(name: str = "p", pattern: str = ".*", priority: int = 0, apply_to: str = "all", **keys: Any) -> Policy:
    definition = {key.replace("_", "-"): value for key, value in keys.items()} or {"max-length": 1}
    return Policy(name, pattern, definition, priority, apply_to)


def quorum_queue(name: str = "q") -> Queue:
    return new_queue(new_vhost(), name, is_durable=True, arguments={"x-queue-type": "quorum"})


def chosen(policies: Policies, queue: Queue) -> str | None:
    found = policies.for_queue(queue)
    return found.name if found is not None else None


def book(*policies: Policy) -> Policies:
    kept = Policies(POLICY_VALUES)
    for one in policies:
        kept.put(one)
    return kept


# Applying


def test_the_policy_of_the_highest_priority_applies_alone() -> None:
    policies = book(policy("low", priority=1, max_length=2, expires=1000), policy("high", priority=2, max_length=3))
    assert chosen(policies, new_queue()) == "high"


def test_of_policies_with_the_same_priority_the_first_by_name_applies() -> None:
    assert chosen(book(policy("b"), policy("a"), policy("c")), new_queue()) == "a"


def test_a_pattern_is_not_anchored() -> None:
    policies = book(policy(pattern="orders"))
    assert chosen(policies, new_queue(name="my-orders-2")) == "p"
    assert chosen(policies, new_queue(name="bills")) is None


def test_the_empty_pattern_matches_every_name() -> None:
    assert chosen(book(policy(pattern="")), new_queue()) == "p"


@pytest.mark.parametrize(
    ("apply_to", "classic", "quorum", "exchange"),
    [
        ("all", True, True, True),
        ("queues", True, True, False),
        ("exchanges", False, False, True),
        ("classic_queues", True, False, False),
        ("quorum_queues", False, True, False),
        ("streams", False, False, False),
    ],
)
def test_a_policy_applies_to_the_kinds_in_apply_to(apply_to: str, classic: bool, quorum: bool, exchange: bool) -> None:
    one = policy(apply_to=apply_to)
    assert one.applies_to_queue(new_queue()) is classic
    assert one.applies_to_queue(quorum_queue()) is quorum
    assert one.applies_to_exchange(new_exchange(new_vhost(), "x")) is exchange


def test_a_policy_with_an_unsupported_key_is_skipped_for_the_next() -> None:
    # RabbitMQ 3.10: {max-length 4, delivery-limit 3} leaves classic queues with the policy below it, and
    # {max-length 4, queue-mode lazy} does so with quorum queues.
    policies = book(
        policy("any", max_length=9),
        policy("quorum", priority=1, max_length=4, delivery_limit=3),
        policy("classic", priority=2, max_length=4, queue_mode="lazy"),
    )
    assert chosen(policies, new_queue()) == "classic"
    assert chosen(policies, quorum_queue()) == "quorum"
    policies.remove("classic")
    assert chosen(policies, new_queue()) == "any"


def test_a_policy_with_a_key_for_exchanges_also_applies_to_queues() -> None:
    assert chosen(book(policy(alternate_exchange="x")), new_queue()) == "p"
    assert chosen(book(policy(alternate_exchange="x")), quorum_queue()) == "p"


def test_unsupported_keys_are_known_keys() -> None:
    assert set().union(*UNSUPPORTED.values()) <= set(POLICY_VALUES)
    assert set(POLICY_VALUES) >= OPERATOR_KEYS


def test_without_policies_the_effective_definition_is_empty() -> None:
    assert effective_definition(new_queue()) == {}
    assert effective_definition(new_exchange(new_vhost(), "x")) == {}


# Adding and removing


def test_policies_are_listed_in_the_order_in_which_they_are_tried() -> None:
    policies = book(policy("b"), policy("a"), policy("c", priority=1))
    assert [one.name for one in policies] == ["c", "a", "b"]
    assert len(policies) == 3


def test_a_policy_replaces_the_one_of_its_name() -> None:
    policies = book(policy(max_length=1), policy(max_length=2))
    assert policies["p"].definition == {"max-length": 2}
    assert len(policies) == 1


def test_a_missing_policy_cannot_be_removed() -> None:
    with pytest.raises(DoesNotExist, match="policy 'nope' does not exist"):
        book().remove("nope")


def test_a_refused_policy_does_not_replace_another() -> None:
    policies = book(policy(max_length=1))
    with pytest.raises(InvalidParameter):
        policies.put(policy(max_length=-1))
    assert policies["p"].definition == {"max-length": 1}


# Invalid policies


def refusal(one: Policy, keys: Any = POLICY_VALUES) -> str:
    with pytest.raises(InvalidParameter) as caught:
        check(one, keys)
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("max-length", -1, "-1 is not a valid maximum length"),
        # A field table holds 64 bits.
        ("max-length", 1 << 63, "9223372036854775808 is not a valid maximum length"),
        ("max-length", "7", '<<"7">> is not a valid maximum length'),
        ("max-length", True, "true is not a valid maximum length"),
        ("max-length-bytes", None, "null is not a valid maximum length in bytes"),
        ("expires", 0, "0 is not a valid queue expiry"),
        ("message-ttl", True, "true is not a valid message TTL"),
        ("message-ttl", 1.5, "1.5 is not a valid message TTL"),
        ("dead-letter-exchange", 7, "7 is not a valid dead letter exchange name"),
        ("dead-letter-routing-key", [], "[] is not a valid dead letter routing key"),
        ("alternate-exchange", 7, "7 is not a valid alternate exchange name"),
        ("overflow", "x", '<<"x">> is not a valid overflow value'),
        ("overflow", ["drop-head"], '[<<"drop-head">>] is not a valid overflow value'),
        ("queue-mode", "x", '<<"x">> is not a valid queue-mode value'),
        ("queue-version", True, "true is not a valid queue-version value"),
        ("dead-letter-strategy", "x", '<<"x">> is not a valid dead letter strategy'),
        ("queue-leader-locator", "x", '<<"x">> is not a valid queue leader locator value'),
        ("delivery-limit", "3", '<<"3">> is not a valid delivery limit'),
        ("max-age", "1 hour", '<<"1 hour">> is not a valid max age'),
        ("consumer-timeout", -1, "-1 is not a valid consumer timeout"),
        ("consumer-disconnected-timeout", -1, "-1 is not a valid consumer disconnected timeout"),
        ("max-age", "0D", '<<"0D">> is not a valid max age'),
        ("target-group-size", 0, "0 is not a valid qq target count value"),
        ("queue-master-locator", "x", '<<"x">> is not a valid master locator'),
        ("shards-per-node", -1, "shards-per-node should be greater than 0, actually was -1"),
        ("shards-per-node", True, "shards-per-node should be a number, actually was true"),
        ("routing-key", "a", "shards-per-node must be specified"),
        ("stream-max-segment-size-bytes", 3_000_000_001, "3000000001 is not a valid segment size"),
        ("delayed-retry-min", 0, "0 is not a valid delayed retry minimum delay. Must be a positive integer"),
        ("delayed-retry-max", "1", '<<"1">> is not a valid delayed retry maximum delay. Must be a positive integer'),
        (
            "delayed-retry-type",
            "x",
            '<<"x">> is not a valid delayed retry type. Must be one of: all, failed, returned, disabled',
        ),
        ("delayed-retry-type", "all", "delayed-retry-min is required when delayed-retry-type is all"),
        ("stream-filter-size-bytes", 15, "15 is not a valid filter size. Valid range is 16-255"),
        ("nonsense", 1, '[{<<"nonsense">>,1}] are not recognised policy settings'),
    ],
)
def test_an_invalid_value_is_refused(key: str, value: Any, text: str) -> None:
    assert refusal(Policy("p", ".*", {key: value})) == text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max-length", 0),
        ("max-length", (1 << 63) - 1),
        ("message-ttl", 400_000_000_000),
        ("delayed-retry-min", 1),
        ("delayed-retry-max", 1),
        ("delayed-retry-type", "disabled"),
        ("delivery-limit", -1),
        ("overflow", "reject-publish-dlx"),
        ("max-age", "7D"),
        ("queue-version", 2),
        ("stream-filter-size-bytes", 16),
        ("stream-filter-size-bytes", 255),
        ("dead-letter-exchange", ""),
        ("federation-upstream-set", "all"),
    ],
)
def test_a_value_at_a_limit_is_accepted(key: str, value: Any) -> None:
    check(Policy("p", ".*", {key: value}), POLICY_VALUES)


def test_the_keys_of_the_sharding_plugin_are_accepted_together() -> None:
    check(Policy("p", ".*", {"shards-per-node": 2, "routing-key": "1234"}), POLICY_VALUES)
    wrong = Policy("p", ".*", {"shards-per-node": 2, "routing-key": 7})
    assert refusal(wrong) == "routing-key should be binary, actually was 7"


def test_a_master_locator_that_a_version_has_not_is_called_deprecated() -> None:
    """Seen in RabbitMQ 4.3.6."""
    policy = Policy("p", ".*", {"queue-master-locator": "random"})
    for keys in (POLICY_VALUES, OPERATOR_KEYS):
        with pytest.raises(InvalidParameter, match="use of deprecated queue-master-locator argument is not permitted"):
            check(policy, known_keys(keys, PROFILES["4.3"]))
        check(policy, known_keys(keys, PROFILES["4.2"]))


def test_keys_of_4_3_are_unknown_to_older_versions() -> None:
    policy = Policy("p", ".*", {"delayed-retry-type": "all", "consumer-disconnected-timeout": 5})
    with pytest.raises(InvalidParameter, match="are not recognised policy settings"):
        check(policy, known_keys(POLICY_VALUES, PROFILES["4.2"]))


def test_the_maximum_delay_of_retries_is_not_below_the_minimum() -> None:
    definition = {"delayed-retry-type": "all", "delayed-retry-min": 5, "delayed-retry-max": 4}
    text = "delayed-retry-max (4) must not be smaller than delayed-retry-min (5)"
    assert refusal(Policy("p", ".*", definition)) == text
    check(Policy("p", ".*", {**definition, "delayed-retry-max": 5}), POLICY_VALUES)


def test_all_unknown_keys_are_reported_if_the_known_ones_are_valid() -> None:
    text = '[{<<"foo">>,<<"x">>},{<<"nonsense">>,1}] are not recognised policy settings'
    assert refusal(Policy("p", ".*", {"nonsense": 1, "max-length": 1, "foo": "x"})) == text
    assert refusal(Policy("p", ".*", {"nonsense": 1, "max-length": -1})) == "-1 is not a valid maximum length"


def test_an_empty_definition_is_refused() -> None:
    assert refusal(Policy("p", ".*", {})) == "no policy provided"


def test_a_definition_is_a_dictionary() -> None:
    definition: Any = [1]
    assert refusal(Policy("p", ".*", definition)) == "definition must be a dictionary: [1]"


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("[", '{"missing terminating ] for character class",1}'),
        ("a)", '{"unmatched parentheses",1}'),
        ("a**", '{"nothing to repeat",2}'),
    ],
)
def test_a_pattern_is_a_regular_expression(pattern: str, reason: str) -> None:
    text = refusal(Policy("p", pattern, {"max-length": 1}))
    assert text == f"pattern should be regular expression but is invalid: {reason}"


def test_a_pattern_is_a_string() -> None:
    pattern: Any = 7
    assert refusal(Policy("p", pattern, {"max-length": 1})) == "pattern should be a binary but was 7"


def test_all_errors_are_reported() -> None:
    text = '-1 is not a valid maximum length\npattern should be regular expression but is invalid: {"missing )",1}'
    assert refusal(Policy("p", "(", {"foo": 1, "max-length": -1})) == text


def test_setting_an_equal_policy_changes_nothing() -> None:
    policies = Policies(POLICY_VALUES)
    assert policies.put(policy(max_length=1))
    assert not policies.put(policy(max_length=1))
    assert policies.put(policy(max_length=2))


def test_a_priority_is_a_number() -> None:
    priority: Any = "x"
    assert refusal(policy(priority=priority)) == 'priority should be a number, actually was <<"x">>'


def test_a_priority_may_lie_between_two_integers() -> None:
    """Seen in RabbitMQ 3.10.8, 4.0.5 and 4.3.6."""
    between: Any = 1.5
    policies = book(policy("a", priority=1), policy("b", priority=2), policy("c", priority=between))
    assert [found.name for found in policies] == ["b", "c", "a"]


def test_an_unknown_apply_to_is_refused() -> None:
    assert refusal(policy(apply_to="x")) == (
        "apply-to 'x' unrecognised; should be one of: 'queues', 'classic_queues',  'quorum_queues', 'streams', "
        "'exchanges', or 'all'"
    )


def test_an_operator_policy_has_limits_but_no_targets() -> None:
    check(policy(overflow="reject-publish", max_length=1), OPERATOR_KEYS)
    text = '[{<<"dead-letter-exchange">>,<<"x">>}] are not recognised policy settings'
    assert refusal(policy(dead_letter_exchange="x"), OPERATOR_KEYS) == text
