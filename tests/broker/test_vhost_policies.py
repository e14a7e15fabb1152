"""What happens to queues and exchanges when policies are set and cleared, and limits to what a vhost holds.

Seen in RabbitMQ 3.10, classic queues: lowering max-length drops at once; a max-length that comes together with overflow
reject-publish drops, too, but not where the queue rejected before; messages keep the time to live that they were
stamped with, whether a policy comes or goes; expires counts from when the policy was set; the default exchange and
those of the broker have policies as all others.
"""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.broker.policies import Policy, effective_definition
from amqp_broker.broker.queue import Queue
from amqp_broker.broker.vhost import VHost
from amqp_broker.errors import DoesNotExist, InvalidParameter, PreconditionFailed
from tests.taker import Taker, bind, new_exchange, new_message, new_queue, new_vhost, pulled, push


@pytest.fixture
def vhost() -> VHost:
    return new_vhost()


def set_policy(vhost: VHost, name: str = "p", pattern: str = ".*", priority: int = 0, **keys: Any) -> None:
    vhost.set_policy(Policy(name, pattern, {key.replace("_", "-"): value for key, value in keys.items()}, priority))


def set_operator_policy(vhost: VHost, name: str = "op", **keys: Any) -> None:
    vhost.set_operator_policy(Policy(name, ".*", {key.replace("_", "-"): value for key, value in keys.items()}))


def bodies(queue: Queue) -> list[bytes]:
    return [body for body, _, _ in pulled(queue)]


def advance(vhost: VHost, duration_ms: int) -> None:
    vhost.broker.tick(vhost.broker.now + duration_ms)


# Which is in force


def test_a_policy_is_in_force_for_queues_that_are_there_and_those_that_come(vhost: VHost) -> None:
    before = new_queue(vhost, "before")
    set_policy(vhost, max_length=2)
    after = new_queue(vhost, "after")
    assert [queue.settings.length_max for queue in (before, after)] == [2, 2]
    assert before.policy is after.policy is vhost.policies["p"]


def test_a_cleared_policy_gives_way_to_the_next(vhost: VHost) -> None:
    queue = new_queue(vhost)
    set_policy(vhost, "low", max_length=2)
    set_policy(vhost, "high", priority=1, max_length=9)
    assert queue.settings.length_max == 9
    vhost.clear_policy("high")
    assert queue.settings.length_max == 2
    vhost.clear_policy("low")
    assert queue.policy is None
    assert queue.settings.length_max is None


def test_a_policy_and_an_operator_policy_apply_together(vhost: VHost) -> None:
    queue = new_queue(vhost)
    set_policy(vhost, max_length=2, message_ttl=600_000)
    set_operator_policy(vhost, max_length=1, expires=3_600_000)
    assert (queue.policy, queue.operator_policy) == (vhost.policies["p"], vhost.operator_policies["op"])
    assert effective_definition(queue) == {"expires": 3_600_000, "max-length": 1, "message-ttl": 600_000}
    vhost.clear_operator_policy("op")
    assert queue.operator_policy is None
    assert effective_definition(queue) == {"max-length": 2, "message-ttl": 600_000}


def test_an_operator_policy_can_only_tighten(vhost: VHost) -> None:
    queue = new_queue(vhost, arguments_={"x-max-length": 3})
    set_operator_policy(vhost, max_length=5)
    assert queue.settings.length_max == 3


def test_a_policy_that_cannot_be_changes_nothing(vhost: VHost) -> None:
    queue = new_queue(vhost)
    set_policy(vhost, max_length=2)
    with pytest.raises(InvalidParameter):
        set_policy(vhost, max_length=-1)
    with pytest.raises(InvalidParameter):
        set_operator_policy(vhost, dead_letter_exchange="x")
    assert queue.settings.length_max == 2
    assert len(vhost.operator_policies) == 0


def test_what_is_not_set_cannot_be_cleared(vhost: VHost) -> None:
    with pytest.raises(DoesNotExist):
        vhost.clear_policy("nope")
    with pytest.raises(DoesNotExist):
        vhost.clear_operator_policy("nope")


def test_exclusive_queues_have_policies_too(vhost: VHost) -> None:
    set_policy(vhost, max_length=2)
    queue = new_queue(vhost, "amq.gen-1", is_auto_delete=True)
    assert queue.policy is not None


# Length


def test_a_lower_max_length_drops_from_the_head_at_once(vhost: VHost) -> None:
    queue = new_queue(vhost)
    push(queue, b"1", b"2", b"3")
    set_policy(vhost, max_length=1)
    assert bodies(queue) == [b"3"]


def test_a_lower_max_length_bytes_drops_from_the_head_at_once(vhost: VHost) -> None:
    queue = new_queue(vhost)
    push(queue, b"12", b"34", b"56")
    set_policy(vhost, max_length_bytes=4)
    assert bodies(queue) == [b"34", b"56"]


def test_what_a_policy_drops_is_dead_lettered_as_the_same_policy_says(vhost: VHost) -> None:
    queue, dead = new_queue(vhost, "q"), new_queue(vhost, "dead")
    push(queue, b"1", b"2")
    set_policy(vhost, pattern="^q$", max_length=1, dead_letter_exchange="", dead_letter_routing_key="dead")
    assert bodies(dead) == [b"1"]


def test_a_limit_that_comes_together_with_a_refusal_still_drops(vhost: VHost) -> None:
    queue = new_queue(vhost)
    push(queue, b"1", b"2", b"3")
    set_policy(vhost, max_length=2, overflow="reject-publish")
    assert bodies(queue) == [b"2", b"3"]


def test_a_queue_that_refuses_before_and_after_drops_nothing(vhost: VHost) -> None:
    queue = new_queue(vhost, arguments_={"x-overflow": "reject-publish"})
    push(queue, b"1", b"2", b"3")
    set_policy(vhost, max_length=2)
    assert queue.ready_count == 3
    assert queue.settings.rejects_publish
    set_policy(vhost, max_length=1)
    assert queue.ready_count == 3


def test_a_queue_that_no_longer_refuses_drops(vhost: VHost) -> None:
    queue = new_queue(vhost)
    set_policy(vhost, max_length=3, overflow="reject-publish")
    push(queue, b"1", b"2", b"3")
    set_policy(vhost, max_length=2)
    assert bodies(queue) == [b"2", b"3"]


def test_a_quorum_queue_drops_where_it_should_refuse_and_dead_letter(vhost: VHost) -> None:
    # RabbitMQ 3.10: with x-max-length 1 and a policy's reject-publish-dlx, four publishes are confirmed, 1 is kept.
    queue = new_queue(vhost, is_durable=True, arguments_={"x-queue-type": "quorum", "x-max-length": 1})
    set_policy(vhost, overflow="reject-publish-dlx")
    push(queue, b"1", b"2")
    assert not queue.settings.rejects_publish
    assert bodies(queue) == [b"2"]


def test_a_quorum_queue_has_its_delivery_limit_from_a_policy(vhost: VHost) -> None:
    queue = new_queue(vhost, is_durable=True, arguments_={"x-queue-type": "quorum", "x-delivery-limit": 5})
    set_policy(vhost, delivery_limit=3)
    assert queue.settings.delivery_limit == 3


# Time


def test_a_time_to_live_counts_for_what_comes_after_it(vhost: VHost) -> None:
    queue = new_queue(vhost)
    push(queue, b"old")
    set_policy(vhost, message_ttl=300)
    advance(vhost, 800)
    assert bodies(queue) == [b"old"]
    push(queue, b"new")
    advance(vhost, 300)
    assert queue.ready_count == 0


def test_what_came_with_a_time_to_live_keeps_it_when_the_policy_goes(vhost: VHost) -> None:
    queue = new_queue(vhost)
    set_policy(vhost, message_ttl=3000)
    push(queue, b"stamped")
    vhost.clear_policy("p")
    push(queue, b"not stamped")
    advance(vhost, 2999)
    assert queue.ready_count == 2
    advance(vhost, 1)
    assert bodies(queue) == [b"not stamped"]


def test_a_queue_is_unused_from_when_the_policy_says_so(vhost: VHost) -> None:
    new_queue(vhost)
    advance(vhost, 2500)
    set_policy(vhost, expires=2000)
    advance(vhost, 1999)
    assert "q" in vhost.queues
    advance(vhost, 1)
    assert "q" not in vhost.queues


def test_a_queue_does_not_expire_when_the_policy_has_gone(vhost: VHost) -> None:
    new_queue(vhost)
    set_policy(vhost, expires=2000)
    advance(vhost, 1000)
    vhost.clear_policy("p")
    advance(vhost, 5000)
    assert "q" in vhost.queues


def test_a_queue_with_a_consumer_does_not_expire(vhost: VHost) -> None:
    queue = new_queue(vhost)
    taker = Taker(queue).start()
    set_policy(vhost, expires=2000)
    advance(vhost, 5000)
    assert "q" in vhost.queues
    taker.stop()
    advance(vhost, 2000)
    assert "q" not in vhost.queues


# Exchanges


def test_a_policy_gives_an_exchange_its_alternate(vhost: VHost) -> None:
    exchange, alternate, queue = new_exchange(vhost, "x", "direct"), new_exchange(vhost, "ae"), new_queue(vhost)
    bind(alternate, queue, vhost)
    set_policy(vhost, pattern="^x$", alternate_exchange="ae")
    assert vhost.route(exchange, ("nowhere",), {}, None)[0] == [queue]
    vhost.clear_policy("p")
    assert vhost.route(exchange, ("nowhere",), {}, None)[0] == []


def test_the_alternate_of_the_argument_counts_before_that_of_the_policy(vhost: VHost) -> None:
    set_policy(vhost, alternate_exchange="policy")
    exchange = new_exchange(vhost, "x", arguments_={"alternate-exchange": "argument"})
    assert exchange.alternate == "argument"
    assert new_exchange(vhost, "y").alternate == "policy"


def test_the_exchanges_of_the_broker_have_policies_too(vhost: VHost) -> None:
    set_policy(vhost, alternate_exchange="ae")
    assert vhost.default_exchange.policy is vhost.exchanges["amq.topic"].policy is vhost.policies["p"]


def test_a_change_of_policies_empties_the_route_caches(vhost: VHost) -> None:
    cache = vhost.route_caches.setdefault("guest", {b"method": "route"})
    set_policy(vhost, max_length=1)
    assert cache == {}


# Limits


def test_a_vhost_has_so_many_queues_and_declares_those_that_are_there(vhost: VHost) -> None:
    queue = new_queue(vhost)
    vhost.set_limit("max-queues", 1)
    with pytest.raises(PreconditionFailed) as caught:
        new_queue(vhost, "other")
    assert str(caught.value) == "cannot declare queue 'other': queue limit in vhost '/' (1) is reached"
    assert new_queue(vhost) is queue
    vhost.clear_limit("max-queues")
    new_queue(vhost, "other")


def test_a_vhost_without_any_queues_by_limit(vhost: VHost) -> None:
    vhost.set_limit("max-queues", 0)
    with pytest.raises(PreconditionFailed, match=r"queue limit in vhost '/' \(0\) is reached"):
        new_queue(vhost)


def test_a_negative_limit_of_queues_is_none(vhost: VHost) -> None:
    vhost.set_limit("max-queues", -1)
    push(new_queue(vhost), b"")
    assert new_queue(vhost).push(new_message()) is None
