"""Behaviour of RabbitMQ with consequences of many kinds: a race, and an order. Each function gives it to amqp-broker.

A difference that such a broker does not show, with all that follows from it, may stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import pytest

from amqp_broker.amqp.message import Message
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.queues.refused_publishers import Publisher
from amqp_broker.broker.routing import dead_letter
from amqp_broker.broker.routing.dead_lettering import DeadLettering
from amqp_broker.broker.routing.route import Route
from amqp_broker.session.channel.channel import Channel
from amqp_broker.session.methods import basic_publish
from compat.duel.unmended import Plant


def a_first_message_arrives_behind_dead_letters(patch: pytest.MonkeyPatch) -> None:
    """Have a channel's first message for a quorum queue arrive behind its dead letters.

    RabbitMQ's channel introduces itself to the queue first (rabbit_fifo_client.erl), and other queues are quicker.
    """
    known: WeakKeyDictionary[Publisher, WeakSet[QuorumQueue]] = WeakKeyDictionary()
    late: list[tuple[QuorumQueue, Message, Publisher]] = []
    offer, held, resolve = QuorumQueue.offer, DeadLettering.held, basic_publish._resolve

    def offer_later(queue: QuorumQueue, message: Message, publisher: Publisher | None = None) -> bool:
        if publisher is None or queue in known.setdefault(publisher, WeakSet()):
            return offer(queue, message, publisher)
        known[publisher].add(queue)
        if queue.will_reject(message):
            return offer(queue, message, publisher)
        late.append((queue, message, publisher))
        return True

    @contextmanager
    def hold(dead_lettering: DeadLettering, **options: Any) -> Iterator[None]:
        with held(dead_lettering, **options):
            yield
        while late and not dead_lettering._is_held:
            offer(*late.pop(0))

    def resolve_without_short_cuts(channel: Channel, method: bytes) -> Route:
        route = resolve(channel, method)
        route.is_plain = False
        return route

    patch.setattr(QuorumQueue, "offer", offer_later)
    patch.setattr(DeadLettering, "held", hold)
    patch.setattr(basic_publish, "_resolve", resolve_without_short_cuts)


def older_deaths_are_reversed(patch: pytest.MonkeyPatch) -> None:
    """Have each death reverse the order of the older ones, as in RabbitMQ 3.10.

    It then finds a rejection where in order a later death comes first, so that a message goes round a cycle.
    """
    with_death = dead_letter.with_death

    def reverse(deaths: list[dict[str, Any]], death: dict[str, Any]) -> list[dict[str, Any]]:
        newest, *others = with_death(deaths, death)
        return [newest, *reversed(others)]

    patch.setattr(dead_letter, "with_death", reverse)


# The functions, each with the profiles of which the oracle behaves so; an empty tuple stands for all.
QUIRKS: dict[Plant, tuple[str, ...]] = {
    a_first_message_arrives_behind_dead_letters: (),
    older_deaths_are_reversed: ("3.13",),
}


def quirks_of(profile: str) -> list[str]:
    """Return the names of the functions for a profile of amqp-broker."""
    return [quirk.__name__ for quirk, profiles in QUIRKS.items() if not profiles or profile in profiles]
