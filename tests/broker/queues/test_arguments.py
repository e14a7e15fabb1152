from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.amqp.fields import Byte, Float32, Long, Short, Timestamp
from amqp_broker.broker.queues.arguments import (
    CONSUMER_ARGUMENTS,
    EXPIRES_MS_MAX,
    QUEUE_ARGUMENTS,
    check,
    check_consumer,
    check_queue,
    check_type,
    is_same,
    known_by_queue,
    require_equal,
    require_equivalent,
)
from amqp_broker.settings.profiles import PROFILES

RESOURCE = "queue 'q' in vhost '/'"


def refusal(arguments: fields.Table, known: dict[str, Any] = QUEUE_ARGUMENTS) -> str:
    """Return the error text for these arguments; an empty string if they are valid."""
    try:
        check(known, arguments, RESOURCE)
    except PreconditionFailed as error:
        return str(error)
    return ""


def difference(current: fields.Table, received: fields.Table) -> str:
    try:
        require_equivalent(RESOURCE, list(QUEUE_ARGUMENTS), current, received)
    except PreconditionFailed as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"x-expires": 1},
        {"x-expires": EXPIRES_MS_MAX},
        {"x-message-ttl": 0},
        {"x-message-ttl": Long(60_000)},
        {"x-max-length": 0, "x-max-length-bytes": Byte(1)},
        {"x-max-priority": 255},
        {"x-overflow": "reject-publish"},
        {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": ""},
        {"x-single-active-consumer": True},
        {"x-queue-mode": "lazy", "x-queue-version": 2},
        {"x-unknown": object, "anything": -1},
    ],
)
def test_valid_arguments_are_accepted(arguments: fields.Table) -> None:
    assert refusal(arguments) == ""


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("x-expires", 0, "{value_zero,0}"),
        ("x-expires", -1, "{value_negative,-1}"),
        ("x-expires", EXPIRES_MS_MAX + 1, "{value_too_large,315360000001}"),
        ("x-expires", "1", '"expected integer, got longstr"'),
        ("x-expires", True, '"expected integer, got bool"'),
        ("x-expires", Timestamp(1), '"expected integer, got timestamp"'),
        ("x-message-ttl", -1, "{value_negative,-1}"),
        ("x-message-ttl", EXPIRES_MS_MAX + 1, "{value_too_large,315360000001}"),
        ("x-message-ttl", 1.0, '"expected integer, got double"'),
        ("x-max-length", -1, "{value_negative,-1}"),
        ("x-max-length-bytes", None, '"expected integer, got void"'),
        ("x-max-priority", 256, "{max_value_exceeded,256}"),
        ("x-max-priority", -1, "{value_negative,-1}"),
        ("x-overflow", "drop-tail", "invalid_overflow"),
        ("x-overflow", 1, "{unacceptable_type,signedint}"),
        ("x-dead-letter-exchange", True, "{unacceptable_type,bool}"),
        ("x-dead-letter-routing-key", "key", "routing_key_but_no_dlx_defined"),
        ("x-dead-letter-routing-key", 1, "{unacceptable_type,signedint}"),
        ("x-single-active-consumer", "true", "{unacceptable_type,longstr}"),
        ("x-queue-mode", "eager", "\"unsupported queue mode 'eager'\""),
        ("x-queue-leader-locator", 5, "{unacceptable_type,signedint}"),
        ("x-queue-version", 3, "\"unsupported queue version '3'\""),
    ],
)
def test_invalid_arguments_are_refused_with_rabbitmqs_reason(name: str, value: Any, reason: str) -> None:
    assert refusal({name: value}) == f"invalid arg '{name}' for queue 'q' in vhost '/': {reason}"


def test_an_unknown_type_is_refused_and_an_empty_one_is_in_4_3_none() -> None:
    """rabbit_amqqueue.erl 4.3.6 (maybe_inject_default_queue_type_shortcut_into_args)."""
    check_queue({"x-queue-type": ""}, PROFILES["4.3"], RESOURCE)
    for compat, queue_type in (("4.2", ""), ("4.3", "nonsense")):
        with pytest.raises(PreconditionFailed, match=f"unsupported queue type '{queue_type}'"):
            check_queue({"x-queue-type": queue_type}, PROFILES[compat], RESOURCE)


@pytest.mark.parametrize(
    ("compat", "queue_type", "arguments", "is_refused"),
    [
        # rabbit_classic_queue.erl 3.10.8 and 4.0.5 (capabilities)
        ("3.13", "classic", {"x-queue-leader-locator": "balanced"}, True),
        ("4.2", "classic", {"x-queue-leader-locator": "balanced"}, False),
        # rabbit_queue_location.erl 4.0.5 (queue_leader_locators)
        ("3.13", "quorum", {"x-queue-leader-locator": "min-masters"}, True),
        ("4.2", "quorum", {"x-queue-leader-locator": "min-masters"}, False),
        # rabbit_quorum_queue.erl 4.3.6 (capabilities)
        ("4.2", "quorum", {"x-consumer-timeout": "odd"}, False),
        ("4.3", "quorum", {"x-consumer-timeout": "odd"}, True),
        ("4.2", "stream", {"x-delayed-retry-type": "all"}, False),
        ("4.3", "stream", {"x-delayed-retry-type": "all"}, True),
        # rabbit_amqqueue.erl (declare_args): no version looks at its value
        ("4.3", "quorum", {"x-delivery-limit": "odd"}, False),
        # pull request 16284
        ("4.2", "quorum", {"x-stream-filter-size-bytes": 16}, False),
        ("4.3", "quorum", {"x-stream-filter-size-bytes": 16}, True),
    ],
)
def test_each_version_has_arguments_of_its_own(
    compat: str, queue_type: str, arguments: fields.Table, is_refused: bool
) -> None:
    table = {"x-queue-type": queue_type, **arguments}
    if is_refused:
        with pytest.raises(PreconditionFailed, match="invalid arg"):
            check_queue(table, PROFILES[compat], RESOURCE)
    else:
        check_queue(table, PROFILES[compat], RESOURCE)


def test_known_arguments_are_compared_in_the_order_of_the_type() -> None:
    assert known_by_queue("stream", (3, 13))[:3] == ("x-max-length-bytes", "x-queue-type", "x-max-age")


@pytest.mark.parametrize(
    ("compat", "queue_type", "argument", "reason"),
    [
        ("3.13", "classic", "x-cancel-on-ha-failover", ": {unacceptable_type,longstr}"),
        ("3.13", "quorum", "x-cancel-on-ha-failover", " of queue type rabbit_quorum_queue"),
        ("4.2", "quorum", "x-stream-filter", " of queue type rabbit_quorum_queue"),
        ("4.3", "classic", "x-consumer-timeout", " of queue type rabbit_classic_queue"),
        ("4.3", "quorum", "x-consumer-timeout", ': "expected integer, got longstr"'),
    ],
)
def test_arguments_of_consumers_depend_on_the_queue_and_the_version(
    compat: str, queue_type: str, argument: str, reason: str
) -> None:
    with pytest.raises(PreconditionFailed) as caught:
        check_consumer({argument: "odd"}, PROFILES[compat], RESOURCE, queue_type)
    assert str(caught.value) == f"invalid arg '{argument}' for {RESOURCE}{reason}"


def test_a_consumers_priority_is_any_integer() -> None:
    assert refusal({"x-priority": -5}, CONSUMER_ARGUMENTS) == ""
    assert refusal({"x-priority": "high"}, CONSUMER_ARGUMENTS) == (
        "invalid arg 'x-priority' for queue 'q' in vhost '/': \"expected integer, got longstr\""
    )


def test_arguments_of_other_queue_types_are_refused() -> None:
    with pytest.raises(PreconditionFailed) as caught:
        check_type(["x-max-age"], {"x-max-age": "1D"}, RESOURCE, "classic")
    assert str(caught.value) == (
        "invalid arg 'x-max-age' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"
    )


def test_the_first_given_argument_of_another_queue_type_is_reported() -> None:
    for names in (["x-max-age", "x-delivery-limit"], ["x-delivery-limit", "x-max-age"]):
        with pytest.raises(PreconditionFailed, match=f"invalid arg '{names[0]}'"):
            check_queue(dict.fromkeys(names, 5), PROFILES["4.2"], RESOURCE)


def test_the_first_invalid_value_in_rabbitmqs_order_is_reported() -> None:
    with pytest.raises(PreconditionFailed, match="invalid arg 'x-expires'"):
        check_queue({"x-max-length": -1, "x-expires": 0}, PROFILES["4.2"], RESOURCE)


# Declaring again


def test_a_redeclaration_with_another_attribute_is_refused() -> None:
    require_equal(RESOURCE, "durable", True, True)
    with pytest.raises(PreconditionFailed) as caught:
        require_equal(RESOURCE, "durable", True, False)
    assert str(caught.value) == (
        "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'"
    )


def test_the_same_arguments_are_equivalent() -> None:
    arguments = {"x-expires": 1000, "x-dead-letter-exchange": "dlx"}
    assert difference(arguments, dict(arguments)) == ""


def test_an_integer_of_another_width_is_equivalent() -> None:
    assert difference({"x-expires": 10}, {"x-expires": Long(10)}) == ""
    assert difference({"x-expires": Short(10)}, {"x-expires": Byte(10)}) == ""


def test_unknown_arguments_are_not_compared() -> None:
    assert difference({"x-unknown": 1}, {"x-unknown": 2}) == ""
    assert difference({}, {"note": "new"}) == ""


def test_a_queue_without_a_type_is_a_classic_one() -> None:
    assert difference({}, {"x-queue-type": "classic"}) == ""
    assert difference({"x-queue-type": "classic"}, {}) == ""


def test_a_different_value_is_shown_without_its_type() -> None:
    assert difference({"x-message-ttl": 20}, {"x-message-ttl": 10}) == (
        "inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received '10' but current is '20'"
    )


def test_void_instead_of_a_value_is_shown_as_none() -> None:
    assert difference({"x-message-ttl": 20}, {"x-message-ttl": None}) == (
        "inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received none but current is '20'"
    )


def test_an_added_value_is_shown_with_its_type() -> None:
    assert difference({}, {"x-message-ttl": 60000}) == (
        "inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': "
        "received the value '60000' of type 'signedint' but current is none"
    )


def test_a_missing_value_is_shown_with_its_type() -> None:
    assert difference({"x-single-active-consumer": True}, {}) == (
        "inequivalent arg 'x-single-active-consumer' for queue 'q' in vhost '/': "
        "received none but current is the value 'true' of type 'bool'"
    )


def test_the_first_difference_in_rabbitmqs_order_is_shown() -> None:
    told = difference({"x-max-length": 1, "x-expires": 1}, {"x-max-length": 2, "x-expires": 2})
    assert "'x-expires'" in told


@pytest.mark.parametrize(("one", "other"), [(1, Long(1)), (1.5, Float32(1.5)), ("a", "a"), (None, None)])
def test_values_are_the_same_within_a_class_of_types(one: Any, other: Any) -> None:
    assert is_same(one, other)


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (1, "1"), (1, Timestamp(1)), ("a", b"a"), (1, 2)])
def test_values_of_different_types_are_not_the_same(one: Any, other: Any) -> None:
    assert not is_same(one, other)
