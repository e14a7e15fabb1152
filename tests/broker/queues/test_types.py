from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp.errors import PreconditionFailed, ResourceLocked
from amqp_broker.broker.queues.arguments import type_of
from amqp_broker.broker.queues.classic import ClassicQueue
from amqp_broker.broker.queues.priority import PriorityQueue
from amqp_broker.broker.queues.queue import Queue, QueueDeclaration
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.broker.queues.types import check_equivalent, queue_class, with_default_type
from tests.broker_parts import new_connection, new_queue


@pytest.mark.parametrize(
    ("arguments", "kind", "name"),
    [
        ({}, ClassicQueue, "classic"),
        ({"x-queue-type": "classic"}, ClassicQueue, "classic"),
        ({"x-queue-type": ""}, ClassicQueue, "classic"),
        ({"x-max-priority": 3}, PriorityQueue, "classic"),
        ({"x-queue-type": "quorum"}, QuorumQueue, "quorum"),
        ({"x-queue-type": "stream"}, StreamQueue, "stream"),
    ],
)
def test_the_arguments_decide_the_type_of_a_queue(arguments: dict[str, Any], kind: type[Queue], name: str) -> None:
    assert queue_class(arguments) is kind
    assert type_of(arguments) == kind.type == name


@pytest.mark.parametrize(
    ("default", "given", "shape", "found"),
    [
        (None, None, (True, False, False), None),
        ("quorum", None, (True, False, False), "quorum"),
        ("stream", None, (True, False, False), "stream"),
        # A queue without a type is classic, and so is one with attributes that no other type can have.
        ("classic", None, (True, False, False), None),
        ("quorum", None, (False, False, False), None),
        ("quorum", None, (True, True, False), None),
        ("stream", None, (True, False, True), None),
        # A named type is used, or leads to an error.
        ("quorum", "stream", (True, False, False), "stream"),
        ("quorum", "classic", (True, False, False), "classic"),
        ("quorum", "no such", (True, False, False), "no such"),
        ("quorum", "undefined", (True, False, False), "quorum"),
    ],
)
def test_a_queue_without_a_type_gets_the_default(
    default: str | None, given: str | None, shape: tuple[bool, bool, bool], found: str | None
) -> None:
    is_durable, is_exclusive, is_auto_delete = shape
    arguments = {"a": 1} if given is None else {"a": 1, "x-queue-type": given}
    owner = new_connection() if is_exclusive else None
    typed = with_default_type(
        QueueDeclaration("q", arguments, is_durable, is_auto_delete, owner), default, adds_classic=False
    )
    assert typed.arguments.get("x-queue-type") == found
    assert typed.arguments["a"] == 1


@pytest.mark.parametrize(
    ("queue_type", "flags", "wrong"),
    [
        ("quorum", {"is_auto_delete": True}, "non-durable"),
        ("stream", {"is_auto_delete": True}, "auto-delete"),
        ("stream", {"is_durable": True, "is_auto_delete": True, "is_exclusive": True}, "auto-delete"),
        ("stream", {"is_exclusive": True}, "exclusive-owner"),
        ("stream", {}, "non-durable"),
    ],
)
def test_invalid_properties_are_refused_in_the_order_of_the_type(
    queue_type: str, flags: dict[str, Any], wrong: str
) -> None:
    owner = new_connection() if flags.pop("is_exclusive", False) else None
    with pytest.raises(PreconditionFailed, match=f"invalid property '{wrong}' for queue 'q' in vhost '/'"):
        new_queue(arguments={"x-queue-type": queue_type}, owner=owner, connection=owner, **flags)


@pytest.mark.parametrize(
    ("argument", "value", "text"),
    [
        ("x-max-length", 5, "invalid arg 'x-max-length' for queue 'q' in vhost '/' of queue type rabbit_stream_queue"),
        ("x-max-length", -5, "invalid arg 'x-max-length' for queue 'q' in vhost '/' of queue type rabbit_stream_queue"),
        ("x-stream-max-segment-size-bytes", 3_000_000_001, "Exceeded max value for x-stream-max-segment-size-bytes"),
        ("x-stream-filter-size-bytes", 15, "Invalid value for  x-stream-filter-size-bytes"),
        ("x-stream-filter-size-bytes", 256, "Invalid value for  x-stream-filter-size-bytes"),
        ("x-max-age", "1W", "invalid arg 'x-max-age' for queue 'q' in vhost '/': invalid_max_age"),
    ],
)
def test_arguments_that_a_stream_cannot_have_are_refused(argument: str, value: Any, text: str) -> None:
    with pytest.raises(PreconditionFailed) as caught:
        new_queue(is_durable=True, arguments={"x-queue-type": "stream", argument: value})
    assert str(caught.value) == text


@pytest.mark.parametrize("size_bytes", [16, 255])
def test_the_smallest_and_the_largest_filter_of_a_stream_are_accepted(size_bytes: int) -> None:
    queue = new_queue(is_durable=True, arguments={"x-queue-type": "stream", "x-stream-filter-size-bytes": size_bytes})
    assert queue.arguments["x-stream-filter-size-bytes"] == size_bytes


@pytest.mark.parametrize("is_exclusive", [True, False])
def test_the_owner_is_compared_before_any_other_attribute(is_exclusive: bool) -> None:
    """rabbit_amqqueue.erl, perform_full_equivalence_checks."""
    owner = new_connection()
    queue = new_queue(is_durable=not is_exclusive, owner=owner if is_exclusive else None, connection=owner)
    other = QueueDeclaration("q", {"x-max-length": 1}, is_exclusive, True, None if is_exclusive else owner)
    with pytest.raises(ResourceLocked):
        check_equivalent(queue, other)
