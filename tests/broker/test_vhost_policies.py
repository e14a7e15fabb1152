"""Effects on queues and exchanges of setting and clearing policies.

Seen in RabbitMQ 3.10 with classic queues:

- Lowering max-length drops messages at once.
- A max-length that is set together with overflow reject-publish drops messages, unless the queue rejected before.
- A message keeps its time to live when a policy is set or cleared.
- `expires` counts from the time when the policy was set.
- Policies also apply to the default exchange and the other exchanges of the broker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from amqp_broker.amqp.errors import DoesNotExist, InvalidParameter
from amqp_broker.broker import vhost_policies
from amqp_broker.broker.admin.policies import Policy, effective_definition
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.scheduling.portions import Steps, finished
from amqp_broker.broker.vhost import VHost
from tests.broker_parts import CollectingConsumer, bind, new_exchange, new_queue, new_route, new_vhost, pulled, push
from tests.peer import Lab


@pytest.fixture
def vhost() -> VHost:
    return new_vhost()


def set_policy(vhost: VHost, name: str = "p", pattern: str = ".*", priority: int = 0, **keys: Any) -> None:
    vhost.policies.set(Policy(name, pattern, {key.replace("_", "-"): value for key, value in keys.items()}, priority))


def set_operator_policy(vhost: VHost, name: str = "op", **keys: Any) -> None:
    vhost.operator_policies.set(Policy(name, ".*", {key.replace("_", "-"): value for key, value in keys.items()}))


@pytest.mark.parametrize("set_one", [set_policy, set_operator_policy])
def test_only_4_3_knows_the_keys_of_delayed_retries(set_one: Callable[..., None]) -> None:
    set_one(Lab(compat="4.3").vhost, delayed_retry_max=5)
    with pytest.raises(InvalidParameter):
        set_one(Lab(compat="4.2").vhost, delayed_retry_max=5)


def bodies(queue: Queue) -> list[bytes]:
    return [body for body, _, _ in pulled(queue)]


def advance(vhost: VHost, duration_ms: int) -> None:
    vhost.broker.tick(vhost.broker.now + duration_ms)


# Policies in force


def test_a_policy_applies_to_existing_and_new_queues(vhost: VHost) -> None:
    before = new_queue(vhost, "before")
    set_policy(vhost, max_length=2)
    after = new_queue(vhost, "after")
    assert [queue.settings.length_max for queue in (before, after)] == [2, 2]
    assert before.policy is after.policy is vhost.policies["p"]


def test_after_clearing_a_policy_the_next_one_applies(vhost: VHost) -> None:
    queue = new_queue(vhost)
    set_policy(vhost, "low", max_length=2)
    set_policy(vhost, "high", priority=1, max_length=9)
    assert queue.settings.length_max == 9
    vhost.policies.clear("high")
    assert queue.settings.length_max == 2
    vhost.policies.clear("low")
    assert queue.policy is None
    assert queue.settings.length_max is None


def test_a_policy_and_an_operator_policy_apply_together(vhost: VHost) -> None:
    queue = new_queue(vhost)
    set_policy(vhost, max_length=2, message_ttl=600_000)
    set_operator_policy(vhost, max_length=1, expires=3_600_000)
    assert (queue.policy, queue.operator_policy) == (vhost.policies["p"], vhost.operator_policies["op"])
    assert effective_definition(queue) == {"expires": 3_600_000, "max-length": 1, "message-ttl": 600_000}
    vhost.operator_policies.clear("op")
    assert queue.operator_policy is None
    assert effective_definition(queue) == {"max-length": 2, "message-ttl": 600_000}


def test_an_operator_policy_can_only_tighten(vhost: VHost) -> None:
    queue = new_queue(vhost, arguments={"x-max-length": 3})
    set_operator_policy(vhost, max_length=5)
    assert queue.settings.length_max == 3


def test_an_invalid_policy_changes_nothing(vhost: VHost) -> None:
    queue = new_queue(vhost)
    set_policy(vhost, max_length=2)
    with pytest.raises(InvalidParameter):
        set_policy(vhost, max_length=-1)
    with pytest.raises(InvalidParameter):
        set_operator_policy(vhost, dead_letter_exchange="x")
    assert queue.settings.length_max == 2
    assert len(vhost.operator_policies) == 0


def test_a_missing_policy_cannot_be_cleared(vhost: VHost) -> None:
    with pytest.raises(DoesNotExist):
        vhost.policies.clear("nope")
    with pytest.raises(DoesNotExist):
        vhost.operator_policies.clear("nope")


def test_policies_apply_to_exclusive_queues(vhost: VHost) -> None:
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


def test_messages_dropped_by_a_policy_are_dead_lettered_by_the_same_policy(vhost: VHost) -> None:
    queue, dead = new_queue(vhost, "q"), new_queue(vhost, "dead")
    push(queue, b"1", b"2")
    set_policy(vhost, pattern="^q$", max_length=1, dead_letter_exchange="", dead_letter_routing_key="dead")
    assert bodies(dead) == [b"1"]


def test_a_policy_limits_the_target_of_dead_letters_before_they_reach_it(vhost: VHost) -> None:
    queue = new_queue(vhost, "q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    dead = new_queue(vhost, "dead")
    push(queue, b"1", b"2", b"3")
    set_policy(vhost, max_length=1, overflow="reject-publish")
    assert (bodies(queue), bodies(dead)) == ([b"3"], [b"1"])


def test_the_target_drops_its_own_messages_before_dead_letters_reach_it(vhost: VHost) -> None:
    queue = new_queue(vhost, "q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    dead = new_queue(vhost, "dead")
    push(queue, b"1" * 20, b"2" * 20)
    push(dead, b"3" * 100, b"4" * 10)
    set_policy(vhost, max_length_bytes=30, overflow="reject-publish")
    assert bodies(dead) == [b"4" * 10, b"1" * 20]


def test_a_consumer_of_the_target_gets_what_a_policy_dead_letters(vhost: VHost) -> None:
    queue = new_queue(vhost, "q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    dead = new_queue(vhost, "dead")
    consumer = CollectingConsumer(dead)
    dead.subscribe(consumer)
    dead.resume(consumer)
    push(queue, b"1", b"2")
    set_policy(vhost, max_length=1)
    assert ([delivery.message.body for delivery in consumer.taken], dead.ready_count) == ([b"1"], 0)


def test_a_limit_set_together_with_reject_publish_drops_messages(vhost: VHost) -> None:
    queue = new_queue(vhost)
    push(queue, b"1", b"2", b"3")
    set_policy(vhost, max_length=2, overflow="reject-publish")
    assert bodies(queue) == [b"2", b"3"]


def test_a_quorum_queue_that_refuses_from_now_on_drops_nothing(vhost: VHost) -> None:
    # Source: rabbit_fifo.erl, evaluate_limit, which sees the new settings only.
    queue = new_queue(vhost, is_durable=True, arguments={"x-queue-type": "quorum"})
    push(queue, b"1", b"2", b"3")
    set_policy(vhost, max_length=2, overflow="reject-publish")
    assert queue.ready_count == 3


def test_a_limit_that_comes_while_the_queue_serves_nothing_drops_messages_afterwards(vhost: VHost) -> None:
    queue = new_queue(vhost)
    push(queue, b"1", b"2", b"3")
    queue.hold()
    set_policy(vhost, max_length=2, overflow="reject-publish")
    assert queue.ready_count == 3
    queue.end_hold()
    assert bodies(queue) == [b"2", b"3"]


def test_a_queue_that_keeps_refusing_drops_nothing(vhost: VHost) -> None:
    queue = new_queue(vhost, arguments={"x-overflow": "reject-publish"})
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
    queue = new_queue(vhost, is_durable=True, arguments={"x-queue-type": "quorum", "x-max-length": 1})
    set_policy(vhost, overflow="reject-publish-dlx")
    push(queue, b"1", b"2")
    assert not queue.settings.rejects_publish
    assert bodies(queue) == [b"2"]


def test_a_quorum_queue_has_its_delivery_limit_from_a_policy(vhost: VHost) -> None:
    queue = new_queue(vhost, is_durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": 5})
    set_policy(vhost, delivery_limit=3)
    assert queue.settings.delivery_limit == 3


# Time


def test_a_time_to_live_applies_to_later_messages(vhost: VHost) -> None:
    queue = new_queue(vhost)
    push(queue, b"old")
    set_policy(vhost, message_ttl=300)
    advance(vhost, 800)
    assert bodies(queue) == [b"old"]
    push(queue, b"new")
    advance(vhost, 300)
    assert queue.ready_count == 0


def test_messages_keep_their_time_to_live_when_the_policy_is_cleared(vhost: VHost) -> None:
    queue = new_queue(vhost)
    set_policy(vhost, message_ttl=3000)
    push(queue, b"stamped")
    vhost.policies.clear("p")
    push(queue, b"not stamped")
    advance(vhost, 2999)
    assert queue.ready_count == 2
    advance(vhost, 1)
    assert bodies(queue) == [b"not stamped"]


def test_the_expiry_of_a_queue_counts_from_the_policy(vhost: VHost) -> None:
    new_queue(vhost)
    advance(vhost, 2500)
    set_policy(vhost, expires=2000)
    advance(vhost, 1999)
    assert "q" in vhost.queues
    advance(vhost, 1)
    assert "q" not in vhost.queues


def test_a_queue_does_not_expire_after_the_policy_is_cleared(vhost: VHost) -> None:
    new_queue(vhost)
    set_policy(vhost, expires=2000)
    advance(vhost, 1000)
    vhost.policies.clear("p")
    advance(vhost, 5000)
    assert "q" in vhost.queues


def test_a_queue_with_a_consumer_does_not_expire(vhost: VHost) -> None:
    queue = new_queue(vhost)
    collector = CollectingConsumer(queue).start()
    set_policy(vhost, expires=2000)
    advance(vhost, 5000)
    assert "q" in vhost.queues
    collector.stop()
    advance(vhost, 2000)
    assert "q" not in vhost.queues


# Exchanges


def test_a_policy_gives_an_exchange_its_alternate(vhost: VHost) -> None:
    exchange, alternate, queue = new_exchange(vhost, "x", "direct"), new_exchange(vhost, "ae"), new_queue(vhost)
    bind(alternate, queue, vhost)
    set_policy(vhost, pattern="^x$", alternate_exchange="ae")
    assert vhost.route(exchange, ("nowhere",), {}, None)[0] == [queue]
    vhost.policies.clear("p")
    assert vhost.route(exchange, ("nowhere",), {}, None)[0] == []


def test_the_alternate_exchange_of_the_argument_has_priority_over_the_policy(vhost: VHost) -> None:
    set_policy(vhost, alternate_exchange="policy")
    exchange = new_exchange(vhost, "x", arguments={"alternate-exchange": "argument"})
    assert exchange.alternate == "argument"
    assert new_exchange(vhost, "y").alternate == "policy"


def test_policies_apply_to_the_exchanges_of_the_broker(vhost: VHost) -> None:
    set_policy(vhost, alternate_exchange="ae")
    assert vhost.default_exchange.policy is vhost.exchanges["amq.topic"].policy is vhost.policies["p"]


def test_a_change_of_policies_empties_the_route_caches(vhost: VHost) -> None:
    cache = vhost.route_cache.of("guest")
    cache.update({b"method": new_route(vhost)})
    set_policy(vhost, max_length=1)
    assert cache == {}


# In steps


@pytest.fixture
def one_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have one queue follow in each step."""
    monkeypatch.setattr(vhost_policies, "QUEUES_AT_ONCE", 1)


def applying(vhost: VHost, policy: Policy) -> Steps[None]:
    """The steps of a policy, up to the first of two queues whose names are `a` and `b`."""
    steps = vhost.policies.setting(policy)
    while vhost.queues["a"].policy is None:
        next(steps)
    assert vhost.queues["b"].policy is None
    return steps


@pytest.mark.usefixtures("one_at_once")
def test_a_policy_applies_to_one_queue_after_the_other(vhost: VHost) -> None:
    first, second = new_queue(vhost, "a"), new_queue(vhost, "b")
    policy = Policy("p", "", {"max-length": 5})
    steps = applying(vhost, policy)
    vhost.remove_queue(second)
    again, new = new_queue(vhost, "b"), new_queue(vhost, "c")
    finished(steps)
    assert [queue.policy for queue in (first, second, again, new)] == [policy, None, policy, policy]


@pytest.mark.usefixtures("one_at_once")
def test_a_policy_that_is_cleared_while_it_is_applied_applies_nowhere(vhost: VHost) -> None:
    queues = [new_queue(vhost, name) for name in ("a", "b")]
    steps = applying(vhost, Policy("p", "", {"max-length": 5}))
    vhost.policies.clear("p")
    finished(steps)
    assert [queue.policy for queue in queues] == [None, None]


@pytest.mark.usefixtures("one_at_once")
def test_a_policy_applies_everywhere_even_if_its_steps_are_given_up(vhost: VHost) -> None:
    queues = [new_queue(vhost, name) for name in ("a", "b")]
    policy = Policy("p", "", {"max-length": 5})
    applying(vhost, policy).close()
    assert [queue.policy for queue in queues] == [policy, policy]


@pytest.mark.usefixtures("one_at_once")
def test_routes_that_are_cached_between_two_steps_follow_the_policy() -> None:
    lab = Lab()
    peer = lab.connect()
    for name in ("a", "b"):
        peer.declare(name)
    policy = Policy("p", "", {"max-length": 1, "overflow": "reject-publish"})
    peer.publish("b", b"0")
    steps = applying(lab.vhost, policy)
    peer.publish("b", b"1")
    finished(steps)
    peer.publish("b", b"2")
    assert bodies(lab.vhost.queues["b"]) == [b"1"]
