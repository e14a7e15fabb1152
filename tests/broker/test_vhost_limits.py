"""Limits of a vhost."""

from __future__ import annotations

import pytest

from amqp_broker.amqp.errors import InternalError, PreconditionFailed
from amqp_broker.broker.queues.queue import QueueDeclaration
from amqp_broker.broker.vhost import VHost
from tests.broker_parts import new_queue, new_vhost, push
from tests.peer import Lab


@pytest.fixture
def vhost() -> VHost:
    return new_vhost()


def test_a_vhost_at_its_queue_limit_still_declares_existing_queues(vhost: VHost) -> None:
    queue = new_queue(vhost)
    vhost.limits.set("max-queues", 1)
    with pytest.raises(PreconditionFailed) as caught:
        new_queue(vhost, "other")
    assert str(caught.value) == "cannot declare queue 'other': queue limit in vhost '/' (1) is reached"
    assert new_queue(vhost) is queue
    vhost.limits.clear("max-queues")
    new_queue(vhost, "other")


def test_a_queue_limit_of_zero_allows_no_queue(vhost: VHost) -> None:
    vhost.limits.set("max-queues", 0)
    with pytest.raises(PreconditionFailed, match=r"queue limit in vhost '/' \(0\) is reached"):
        new_queue(vhost)


def test_a_negative_queue_limit_allows_any_number(vhost: VHost) -> None:
    vhost.limits.set("max-queues", -1)
    push(new_queue(vhost), b"")
    push(new_queue(vhost), b"")


@pytest.mark.parametrize(("compat", "reason"), [("3.13", "queue limit"), ("4.0", "invalid"), ("4.3", "invalid")])
def test_a_queue_is_refused_for_its_argument_before_a_limit_from_4_0_on(compat: str, reason: str) -> None:
    vhost = Lab(compat=compat).vhost
    vhost.limits.set("max-queues", 0)
    with pytest.raises(PreconditionFailed, match=reason):
        vhost.declare_queue(QueueDeclaration("q", {"x-max-length": "a"}, is_durable=True))


def test_a_queue_is_refused_as_a_deprecated_feature_before_a_limit() -> None:
    vhost = Lab(compat="4.3").vhost
    vhost.limits.set("max-queues", 0)
    with pytest.raises(InternalError, match="transient_nonexcl_queues"):
        vhost.declare_queue(QueueDeclaration("q", {}))
