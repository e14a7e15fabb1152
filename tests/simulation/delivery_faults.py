"""Deliveries that rules hit: late ones, duplicates, and those that end their consumer.

The broker may choose the consumer, so the model takes the consumer of a late delivery from the broker
(`hear_of_late`). The rules determine that it is late, until when, and its fate.

- A late delivery is neither ready nor with its client, counts among the unacked ones of its consumer, and comes at its
  time. If its consumer is gone by then it is requeued, and this rule does not delay it again.
- A held delivery is the same, and its time is that of its release: by a command, or as its rule ends.
- A duplicate is the very next delivery, redelivered. It counts against no prefetch but the channel's (as what was
  pulled does) and in no statistics, and goes nowhere when it is settled.
- A consumer is cancelled when the broker has time to.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pamqp import frame

from amqp_broker.broker.lab import delivery_faults
from amqp_broker.broker.lab.delivery_faults import DelayedDelivery
from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.queues.consumer import Consumer
from tests.simulation.client import ChannelModel, Client, ConsumerModel, Delivery, Held
from tests.simulation.ledger import Copy, Heard, State, demand, heard_in
from tests.simulation.queues import QueueModel

if TYPE_CHECKING:
    from tests.simulation.faults import RuleModel
    from tests.simulation.simulation import Simulation
    from tests.simulation.world import World

DELIVERY_ACTIONS = ["delay_delivery", "hold_delivery", "duplicate", "cancel_consumer"]


@dataclass(eq=False)
class LateModel:
    """A delivery that is late, and the rule that has hit it."""

    copy: Copy
    consumer: ConsumerModel
    heard: Heard
    redelivered: bool
    # None while it is held.
    due_ms: int | None
    rule: RuleModel


def is_strike(callback: object) -> bool:
    return isinstance(callback, partial) and callback.func is delivery_faults.strike


def hear_of_late(sim: Simulation) -> None:
    """Note new late deliveries, which the clients do not have yet."""
    known = sim.faults.delayed
    for ones in sim.lab.broker.faults.delayed.values():
        for late in ones.values():
            if late not in known:
                known[late] = None
                delivered = late.handover.delivered
                content, pieces = frame.unmarshal(delivered.content)[2], delivered.body_pieces()
                heard = heard_in(delivered, content, b"".join(pieces))
                consumer = consumer_of(sim, late.handover.consumer)
                delivery = Delivery(consumer, 0, late.handover.redelivered, heard, late)
                sim.world.heard.setdefault(consumer.queue, []).append(delivery)


def consumer_of(sim: Simulation, consumer: Consumer) -> ConsumerModel:
    client = next(client for client in sim.clients if client.peer.session is consumer.connection)
    return client.channels[consumer.number].consumers[consumer.tag]


def deliver(world: World, delivery: Delivery, copy: Copy) -> None:
    """Deliver a copy to a consumer, now or late, as the rules say."""
    model, consumer = world.faults, delivery.consumer
    delay = next((one for one in model.rules if delays(one, copy) and not was_allowed(one) and one.count_match()), None)
    for one in model.rules:
        one.delayed.discard(copy)
    demand((delay is not None) == (delivery.late is not None), f"{delivery} is late, or is not")
    consumer.check_precedence(copy)
    consumer.channel.count_in(consumer)
    if delivery.late is None:
        consumer.channel.hold(delivery.tag, copy, consumer, consumer.no_ack)
        follow_hits(world, delivery, copy)
    else:
        assert delay is not None
        due_ms = None if delay.said["action"] == "hold_delivery" else world.now + delay.said["delay_ms"]
        late = LateModel(copy, consumer, delivery.heard, delivery.redelivered, due_ms, delay)
        model.delayed[delivery.late] = late
        consumer.channel.late.append(late)


def delays(one: RuleModel, copy: Copy) -> bool:
    """Return whether a rule delays a delivery, unless it is spent or passes over it."""
    is_delay = one.said["action"] in ("delay_delivery", "hold_delivery") and copy not in one.delayed
    return is_delay and one.fits(copy.message, copy.queue.name)


def was_allowed(one: RuleModel) -> bool:
    """Use up a release that came before its delivery."""
    is_allowed = one.allowed > 0 and not one.is_spent
    one.allowed -= is_allowed
    return is_allowed


def follow_hits(world: World, delivery: Delivery, copy: Copy) -> None:
    """Apply the rules that hit what a consumer has got: duplicates, and a cancellation unless one is due."""
    consumer, tag, model = delivery.consumer, delivery.tag, world.faults
    for one in model.rules:
        if one.said["action"] == "duplicate" and one.fits(copy.message, copy.queue.name) and one.count_match():
            tag += 1
            hear_duplicate(world, consumer, Delivery(consumer, tag, True, delivery.heard))
    if consumer not in model.cancels_due and model.first("cancel_consumer", copy.message, copy.queue.name) is not None:
        model.cancels_due.append(consumer)


def hear_duplicate(world: World, consumer: ConsumerModel, expected: Delivery) -> None:
    heard = world.heard.get(consumer.queue, [])
    demand(expected in heard, f"{expected} must come again, not {heard[:1]}")
    heard.remove(expected)
    world.count_duplicate(consumer)
    if not consumer.no_ack:
        copy = next(held.copy for tag, held in sorted(consumer.channel.unsettled.items()) if tag == expected.tag - 1)
        nowhere = QueueModel(world, consumer.queue.name, {})
        nowhere.is_deleted = True
        duplicate = world.ledger.enter(copy.message, nowhere, State.UNACKED)
        duplicate.is_duplicate = True
        consumer.channel.held[expected.tag] = Held(duplicate, None, world.now)


def release(sim: Simulation) -> None:
    """Some deliveries that a rule holds are made."""
    holding = [one for one in sim.faults.rules if one.said["action"] == "hold_delivery"]
    if not holding:
        return
    one, count = sim.chance.choice(holding), sim.chance.choice([1, 1, 3])
    sim.tell(f"{count} of {one.said}")
    expected = min(count, len(held_by(sim, one)))
    one.allowed += count - expected
    found = sim.lab.broker.faults.release(one.rule.id, count)
    demand(found == expected, f"{found} deliveries are released, not {expected}")
    let_go(sim, one, count)


def let_go(sim: Simulation, one: RuleModel, count: int | None = None) -> None:
    """The oldest deliveries that a rule holds, or all, are due."""
    for late in held_by(sim, one)[:count]:
        late.due_ms = sim.lab.now


def held_by(sim: Simulation, one: RuleModel) -> list[LateModel]:
    return [late for late in sim.faults.delayed.values() if late and late.rule is one and late.due_ms is None]


# When the time has come


def come_late(sim: Simulation, callback: DelayedDelivery) -> None:
    """A delivery that was late is there, or goes back."""
    world, late = sim.world, sim.faults.delayed.pop(callback)
    assert late is not None
    copy, consumer, channel = late.copy, late.consumer, late.consumer.channel
    demand(sim.lab.now == late.due_ms, f"{copy} comes at {sim.lab.now}, and was due at {late.due_ms}")
    if consumer not in copy.queue.consumers:
        return_late(world, late)
        return
    heard = world.heard.get(copy.queue, [])
    demand(heard, f"{consumer.client}: {copy} does not come")
    delivery = heard.pop(0)
    expected = Delivery(consumer, delivery.tag, late.redelivered, late.heard)
    demand(delivery == expected, f"{delivery} comes, not {expected}")
    channel.late.remove(late)
    channel.hold(delivery.tag, copy, consumer, consumer.no_ack)
    follow_hits(world, delivery, copy)


def return_late(world: World, late: LateModel) -> None:
    copy, channel = late.copy, late.consumer.channel
    late.rule.delayed.add(copy)
    blocked = world.blocked(channel)
    channel.was_freed = True
    copy.queue.requeue(copy)
    copy.queue.end_requeue()
    channel.late.remove(late)
    if not (late.consumer.no_ack or late.consumer.queue.is_quorum):
        channel.count_out(1)
    for consumer in blocked:
        consumer.is_asleep = True
    copy.queue.drain()
    copy.queue.trim()
    world.wake(blocked)


def strike(sim: Simulation, callback: partial[None]) -> None:
    """Carry out the cancellation that a delivery has caused."""
    consumer = callback.args[1]
    due = next(
        one
        for one in sim.faults.cancels_due
        if (one.client.peer.session, one.channel.number, one.tag, one.queue.name)
        == (consumer.connection, consumer.number, consumer.tag, consumer.queue.name)
    )
    sim.faults.cancels_due.remove(due)
    cancel(sim.world, due)


def cancel(world: World, consumer: ConsumerModel) -> None:
    """End a subscription, with basic.cancel if the client understands it; unacked messages stay unacked."""
    if consumer in consumer.queue.consumers:
        world.cancel(consumer)
        consumer.client.expect_cancel(consumer)


def cancel_now(sim: Simulation) -> None:
    """All consumers of a queue, or of all, are cancelled."""
    queue = sim.chance.choice([*sim.taste.queues, None])
    clients: list[Client] = sorted(sim.clients, key=lambda client: client.peer.session.name)
    channels: list[ChannelModel] = [channel for client in clients for channel in client.channels.values()]
    consumers = [one for channel in channels for one in channel.consumers.values() if queue in (None, one.queue.name)]
    sim.tell(f"{[(str(one.client), one.tag) for one in consumers]} of {queue}")
    rule = sim.lab.broker.faults.add(Rule("cancel_consumer", queue=queue))
    sim.hear()
    found = rule.hits
    sim.lab.broker.faults.remove(rule.id)
    demand(found == len(consumers), f"{found} consumers are cancelled, not {len(consumers)}")
    for consumer in consumers:
        cancel(sim.world, consumer)
