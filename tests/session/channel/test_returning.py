from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.clients.client_channel import Delivery
from amqp_broker.broker.queues.consumer import Consumer
from amqp_broker.broker.scheduling.portions import WORK_MAX, finished
from amqp_broker.session.channel.returning import (
    SETTLED_MAX,
    Group,
    Parted,
    apart,
    by_consumer,
    lost_order,
    settled_order,
)
from tests.broker_parts import CollectingConsumer, new_message, new_queue
from tests.peer import Lab
from tests.present import present

Deliveries = list[tuple[int, Delivery]]
QUEUE = new_queue()


def consumer(tag: str, sequence: int = 0) -> Consumer:
    made = CollectingConsumer(QUEUE, tag=tag)
    made.sequence = sequence
    return made


def held(*consumers: Consumer | None) -> Deliveries:
    """Deliveries to these consumers (None: basic.get), with the tags 1, 2 and so on."""
    return [(tag, (QUEUE, one, tag, new_message(b""))) for tag, one in enumerate(consumers, 1)]


def parted(deliveries: Deliveries) -> Parted:
    return finished(by_consumer(Lab().broker, deliveries))


def tags(groups: Iterable[Group]) -> list[int]:
    return [tag for _, deliveries in groups for tag, _ in deliveries]


def test_gets_are_settled_before_the_deliveries_of_each_consumer() -> None:
    a, b = consumer("a", 2), consumer("b", 1)
    assert tags(settled_order(parted(held(b, a, None, b, a, None)))) == [3, 6, 2, 5, 1, 4]


@pytest.mark.parametrize("order", [settled_order, lambda one: lost_order(one, is_by_tag=False)])
def test_deliveries_of_one_consumer_keep_their_order(order: Callable[[Parted], list[Group]]) -> None:
    a = consumer("a")
    assert tags(order(parted(held(a, a, a)[::-1]))) == [3, 2, 1]


def test_thousands_of_deliveries_are_parted_in_portions() -> None:
    a, b, broker = consumer("a"), consumer("b"), Lab().broker
    works = [broker.work for _ in by_consumer(broker, held(*[a, b] * SETTLED_MAX))]
    assert len(works) == 1
    assert 0 < works[0] < WORK_MAX


def test_a_lost_channel_returns_deliveries_in_the_order_of_subscriptions_and_then_gets_by_the_text_of_their_tags() -> (
    None
):
    a, b = consumer("a", 2), consumer("b", 1)
    deliveries = held(a, None, b, *[None] * 8)
    assert tags(lost_order(parted(deliveries), is_by_tag=False)) == [3, 1, 10, 11, 2, 4, 5, 6, 7, 8, 9]


def test_a_lost_channel_returns_deliveries_in_the_order_of_all_tags_up_to_3_13() -> None:
    a, b = consumer("a", 2), consumer("1b", 1)
    assert tags(lost_order(parted(held(a, None, b, None)), is_by_tag=True)) == [3, 2, 4, 1]


def test_deliveries_of_one_consumer_come_back_all_at_once() -> None:
    one = consumer("a")
    assert [tags(portion) for portion in apart(settled_order(parted(held(one, one))))] == [[1, 2]]


def test_deliveries_of_several_consumers_and_of_each_get_come_back_one_after_the_other() -> None:
    a, b = consumer("a"), consumer("b")
    groups = settled_order(parted(held(None, a, None, b, a)))
    assert [tags(portion) for portion in apart(groups)] == [[1], [3], [2, 5], [4]]


@pytest.mark.parametrize("arguments", [{}, {"x-max-priority": 3}])
def test_a_classic_queue_drops_and_expires_messages_when_all_of_a_lost_channel_are_back(
    lab: Lab, arguments: dict[str, Any]
) -> None:
    peer, holder = lab.connect(), lab.connect()
    peer.declare("dead")
    given = {"x-max-length": 2, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", **arguments}
    peer.declare("q", arguments=given)
    holder.consume("q")
    peer.publish("q", b"1", expiration="1")
    for body in (b"2", b"3", b"4"):
        peer.publish("q", body)
    lab.advance(10)
    holder.disconnect()
    reasons = []
    while (got := peer.get("dead")) is not None:
        reasons.append((got[1].body, present(got[1].properties.headers)["x-first-death-reason"]))
    assert reasons == [(b"1", "maxlen"), (b"2", "maxlen")]


@pytest.mark.parametrize(("kind", "order"), [("classic", [b"1", b"3"]), ("quorum", [b"3", b"1"])])
def test_a_full_consumer_keeps_its_turn_in_a_classic_queue_only(lab: Lab, kind: str, order: list[bytes]) -> None:
    limited, other = lab.connect(), lab.connect()
    limited.declare("q", durable=True, arguments={"x-queue-type": kind})
    limited.call(commands.Basic.Qos(prefetch_count=2))
    limited.consume("q")
    other.consume("q")
    for body in (b"1", b"2", b"3", b"4"):
        other.publish("q", body)
    assert (limited.bodies(), other.bodies()) == ([b"1", b"3"], [b"2", b"4"])
    limited.send(commands.Basic.Nack(0, multiple=True))
    assert limited.bodies() + other.bodies() == order


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("settle", [commands.Basic.Recover(requeue=True), commands.Basic.Nack(0, multiple=True)])
def test_a_waiting_consumer_takes_the_message_of_each_get_before_the_next_is_back(
    lab: Lab, kind: str, settle: commands.Basic.Recover | commands.Basic.Nack
) -> None:
    getter, other, reader = lab.connect(), lab.connect(), lab.connect()
    getter.declare("q", durable=True, arguments={"x-queue-type": kind})
    getter.publish("q", b"1")
    getter.publish("q", b"2")
    other.send(commands.Basic.Get(queue="q"))
    getter.send(commands.Basic.Get(queue="q"))
    other.send(commands.Basic.Reject(1, requeue=True))
    getter.send(commands.Basic.Get(queue="q"))
    reader.consume("q", tag="c")
    getter.send(settle)
    lab.drain()
    assert reader.bodies() == [b"2", b"1"]
