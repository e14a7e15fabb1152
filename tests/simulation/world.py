"""The model as a whole: objects, time, received frames, and effects on several queues at once.

In a step of the simulation the broker does something, all clients receive its frames, and then the model does the same,
following the frames where the broker may choose. `recovery.py` has the effects of a crash.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from tests.simulation.client import ChannelModel, Client, ConsumerModel, Delivery, Held, Publish
from tests.simulation.counting import Tally
from tests.simulation.delivery_faults import deliver
from tests.simulation.ledger import REJECTED, Copy, Ledger, Message, demand
from tests.simulation.queue_settings import PolicyModel, policy_for
from tests.simulation.queues import QueueModel
from tests.simulation.routing import ExchangeModel, Topology

if TYPE_CHECKING:
    from tests.simulation.faults import FaultsModel


class World:
    """`heard` are deliveries that clients have heard and the model has not explained yet."""

    def __init__(self, now: int, order: Callable[[str, list[str]], list[str]], faults: FaultsModel) -> None:
        """`order` tells in which order the broker visits the queues of one message, which is its own business."""
        self.now = now
        self.faults = faults
        self.ledger = Ledger()
        self.tally = Tally()
        self.topology = Topology()
        self.policies: dict[str, PolicyModel] = {}
        self.operator_policies: dict[str, PolicyModel] = {}
        self.heard: dict[QueueModel, list[Delivery]] = {}
        # The queues of the key of each channel's last message.
        self.last_routes: dict[ChannelModel, list[QueueModel]] = {}
        self._order = order
        self._dying: deque[tuple[Copy, str]] = deque()
        self._is_dead_lettering = False

    # Received frames

    def hear(self, delivery: Delivery) -> None:
        consumer = delivery.consumer
        self.heard.setdefault(consumer.queue, []).append(delivery)
        kind = "deliver_no_ack" if consumer.no_ack else "deliver"
        self.count(consumer.channel, consumer.queue, kind, *(["redeliver"] if delivery.redelivered else []))

    def count_duplicate(self, consumer: ConsumerModel) -> None:
        """Take back the count of a delivery that turned out to be a duplicate."""
        kind = "deliver_no_ack" if consumer.no_ack else "deliver"
        for stats in (self.tally.stats, consumer.channel.stats, consumer.queue.stats):
            stats.subtract([kind, "redeliver"])

    def count(self, channel: ChannelModel, queue: QueueModel, *names: str) -> None:
        """Something happened that is counted, on a channel and to a message of a queue."""
        for stats in (self.tally.stats, channel.stats, queue.stats):
            stats.update(names)

    def count_confirms(self, count: int) -> None:
        self.tally.stats["confirm"] += count

    def heard_of(self, copy: Copy) -> Delivery | None:
        """Return a delivery of this copy to an eligible consumer, if any, and mark it as explained."""
        deliveries = self.heard.get(copy.queue, [])
        expected = copy.heard()
        for delivery in sorted(deliveries, key=lambda delivery: not delivery.consumer.is_leaving):
            if (
                delivery.heard == expected
                and delivery.redelivered == copy.is_redelivered
                and delivery.consumer.may_have_taken()
            ):
                deliveries.remove(delivery)
                return delivery
        return None

    def deliver(self, delivery: Delivery, copy: Copy) -> None:
        """Hand this copy, which has left its queue, to the consumer that got it."""
        deliver(self, delivery, copy)

    def drain(self) -> None:
        """Match received deliveries with the heads of queues until nothing changes."""
        before = -1
        while (left := sum(map(len, self.heard.values()))) and left != before:
            before = left
            for queue in list(self.topology.queues.values()):
                queue.drain()

    def explain_all(self) -> None:
        """Match all received deliveries with the heads of queues, and fail if one is left."""
        self.drain()
        for queue, deliveries in self.heard.items():
            demand(
                not deliveries,
                f"{queue.name} delivers {deliveries[:1]}, but has {[(c, c.heard()) for c in queue.ready[:2]]}",
            )
        self.heard.clear()

    # Messages

    def route(self, exchange: str, keys: list[str]) -> list[QueueModel]:
        """The queues that a message goes to, in the broker's order."""
        found = {queue.name: queue for queue in self.topology.route(exchange, keys)}
        order = self._order(exchange, keys)
        return [found[name] for name in order if name in found] + [found[name] for name in found if name not in order]

    def must_keep(self, message: Message) -> bool:
        """Return whether a copy of a message, or a dead letter of one, outlives the process."""
        return any(
            copy.message.number == message.number and queue.keeps(copy.message)
            for queue in self.topology.queues.values()
            for copy in (*queue.ready, *queue.unacked)
        )

    def has_exchange(self, name: str | None) -> bool:
        return name == "" or name in self.topology.exchanges

    def publish(self, publish: Publish, channel: ChannelModel) -> bool:
        """A message gets to its queues. Returns False if one of them refused it."""
        message = publish.message
        self.last_routes[channel] = list(self.topology.route(message.exchange, [message.routing_key]))
        with self.deaths_held():
            taken = [queue.accept(publish.message, channel) for queue in publish.queues if not queue.is_deleted]
        return all(taken)

    @contextmanager
    def deaths_held(self) -> Iterator[None]:
        """Publish dead letters of the block at its end."""
        is_outermost = not self._is_dead_lettering
        self._is_dead_lettering = True
        yield
        if is_outermost:
            self._publish_dead()

    def dead_letter(self, copy: Copy, reason: str) -> None:
        """Publish anew what a queue gives up; what dies of that comes after it."""
        self._dying.append((copy, reason))
        if not self._is_dead_lettering:
            self._publish_dead()

    def _publish_dead(self) -> None:
        self._is_dead_lettering = True
        while self._dying:
            copy, reason = self._dying.popleft()
            settings = copy.queue.settings
            assert settings.dead_letter_exchange is not None
            dead = copy.message.died(
                copy.queue.name, reason, self.now, settings.dead_letter_exchange, settings.dead_letter_routing_key
            )
            if copy.queue.is_quorum:
                dead = replace(dead, failures=dead.failures + copy.losses + (reason == REJECTED))
            for queue in self.route(settings.dead_letter_exchange, dead.keys):
                if not dead.would_cycle(queue.name):
                    queue.accept(dead)
        self._is_dead_lettering = False

    # Settling

    def settle(self, channel: ChannelModel, tags: list[int], verdict: str, is_lost: bool = False) -> None:
        """`verdict` is ack, requeue or reject; with `is_lost` nothing was said."""
        tags = sorted(tags, key=lambda tag: when_lost(channel, tag) if is_lost else when_settled(channel, tag))
        portions = self._portions(channel, tags) if verdict == "requeue" and not is_lost else [tags]
        with self.deaths_held():
            for portion in portions:
                self._settle_portion(channel, portion, verdict, is_lost, [])

    def _settle_portion(
        self, channel: ChannelModel, tags: list[int], verdict: str, is_lost: bool, sleeping: list[ConsumerModel]
    ) -> None:
        """Settle a portion; then `sleeping` wake, before a queue drops messages."""
        sleeping += self.blocked(channel, [channel.held[tag].consumer for tag in tags])
        queues = self._settle(channel, tags, verdict, is_lost)
        for consumer in sleeping:
            consumer.is_asleep = True
        self.wake(sleeping)
        sleeping.clear()
        for queue in queues:
            queue.drain()
            before = -1
            while queue.is_overfull and len(queue.ready) != before:
                # Consumers have all that they can take, in as many portions as that takes.
                before = len(queue.ready)
                queue.drain()
            queue.trim()

    @staticmethod
    def _is_trimmed(channel: ChannelModel, tag: int) -> bool:
        """Return whether the queue of a delivery drops what is too much, or a classic one what is late."""
        queue = channel.held[tag].copy.queue
        settings = queue.settings
        has_limit = settings.length_max is not None or settings.bytes_max is not None
        is_timed = not queue.is_quorum and any(one.deadline_ms is not None for one in (*queue.ready, *queue.unacked))
        return (has_limit and not settings.refuses) or is_timed

    def _portions(self, channel: ChannelModel, tags: list[int]) -> list[list[int]]:
        """Those of a consumer come back together, unless each goes behind all others.

        Where nothing is dropped, quorum queues have all of them back before they serve anything.
        """
        is_trimmed = any(self._is_trimmed(channel, tag) for tag in tags)
        consumers = [channel.held[tag].consumer for tag in tags]
        has_alone = any(
            one is None or (one.queue.is_quorum and one.queue.settings.delivery_limit is None) for one in consumers
        )
        if channel.prefetch_total and not (is_trimmed and has_alone):
            # All are back before the limit of the channel is free.
            return [tags] if tags else []
        portions: list[list[int]] = []
        last: ConsumerModel | None = None
        for tag in tags:
            held = channel.held[tag]
            queue = held.copy.queue
            consumer = held.consumer if is_trimmed or not queue.is_quorum else None
            is_alone = is_trimmed and (consumer is None or (queue.is_quorum and queue.settings.delivery_limit is None))
            if not portions or consumer is not last or is_alone:
                portions.append([])
            portions[-1].append(tag)
            last = consumer
        return portions

    def _settle(self, channel: ChannelModel, tags: list[int], verdict: str, is_lost: bool = False) -> list[QueueModel]:
        """Settle deliveries and return the queues to drain. All count against the prefetch until the end."""
        queues: dict[QueueModel, list[Copy]] = {}
        frames = sorted((channel.held[tag].frame, tag) for tag in tags)
        for _, of_frame in groupby(frames, key=lambda item: item[0]):
            channel.count_out(sum(channel.held[tag].consumer is not None for _, tag in of_frame))
        for tag in tags:
            copy = channel.held[tag].copy
            if verdict == "ack":
                if not copy.is_duplicate:
                    self.count(channel, copy.queue, "ack")
                copy.queue.settle(copy)
            elif verdict == "reject":
                copy.queue.reject(copy)
            else:
                queues.setdefault(copy.queue, []).append(copy)
        for queue, returned in queues.items():
            for copy in returned:
                queue.requeue(copy, is_lost)
            queue.end_requeue()
        for tag in tags:
            del channel.held[tag]
        return list(queues)

    def commit(self, channel: ChannelModel) -> bool:
        """Route the publishes, then settle. Return False if a queue refused a message."""
        publishes, channel.publishes = channel.publishes, []
        with self.deaths_held():
            is_complete = self._publish_all(publishes, channel)
            self._settle_committed(channel)
        return is_complete

    def _settle_committed(self, channel: ChannelModel) -> None:
        settled = sorted(channel.settled.items(), key=lambda item: item[1][1] != "ack")
        # A consumer at its limit while messages wait gets no more before everything is settled.
        blocked = self.blocked(channel, [held.consumer for _, (held, _) in settled])
        sleeping = [consumer for consumer in blocked if consumer.queue.ready]
        for consumer in sleeping:
            consumer.is_asleep = True
        self._commit_settled(channel, settled, sleeping)
        self.wake(sleeping)
        self.wake([consumer for consumer in blocked if consumer.queue.is_quiescing])

    def _commit_settled(
        self, channel: ChannelModel, settled: list[tuple[int, tuple[Held, str]]], sleeping: list[ConsumerModel]
    ) -> None:
        for (verdict, _), items in groupby(
            settled, key=lambda item: (item[1][1], item[1][1] != "ack" and item[1][0].method)
        ):
            tags = []
            for tag, (held, _) in items:
                del channel.settled[tag]
                channel.held[tag] = held
                tags.append(tag)
            tags.sort(key=lambda tag: when_settled(channel, tag))
            for portion in self._portions(channel, tags) if verdict == "requeue" else [tags]:
                if verdict == "requeue":
                    self._settle_portion(channel, portion, verdict, False, sleeping)
                else:
                    self._settle(channel, portion, verdict)

    def _publish_all(self, publishes: list[Publish], channel: ChannelModel) -> bool:
        """Publish a transaction. Return False if a classic queue refused a message that no quorum queue did.

        A quorum queue takes all messages or none, whatever its limit says in between.
        """
        quorum = {
            queue for publish in publishes for queue in publish.queues if queue.is_quorum and not queue.is_deleted
        }
        closed = {queue for queue in quorum if queue.refuses_channel(channel)}
        is_complete = True
        for publish in publishes:
            queues = [queue for queue in publish.queues if not queue.is_deleted]
            taken = [queue.accept(publish.message, None, is_closed=queue in closed) for queue in queues]
            if not all(taken) and not closed.intersection(queues):
                is_complete = False
            # A classic queue that was deleted refuses its messages.
            if any(queue.is_deleted and not queue.is_quorum for queue in publish.queues):
                is_complete = False
        return is_complete

    def blocked(self, channel: ChannelModel, first: Iterable[ConsumerModel | None] = ()) -> list[ConsumerModel]:
        """The consumers of a channel that cannot take now, in the order in which they will wake up."""
        return [
            consumer
            for consumer in dict.fromkeys([*first, *channel.consumers.values()])
            if consumer is not None and not consumer.can_take()
        ]

    def wake(self, consumers: list[ConsumerModel]) -> None:
        """These can take again, if they can, one after the other."""
        for consumer in consumers:
            consumer.is_asleep = True
        for consumer in consumers:
            if consumer.channel.prefetch_total:
                # Consumers that a limit has held back line up before the first of them gets anything.
                consumer.is_asleep = False
        for consumer in consumers:
            consumer.is_asleep = False
            if consumer is consumer.queue.active:
                consumer.queue.end_quiescing()
            consumer.queue.drain()

    # Ends

    def close_channel(self, client: Client, channel: ChannelModel) -> None:
        """A channel is gone: its consumers first, then what it holds goes back, before others get anything."""
        left = self._leave_all(channel)
        self._give_back(channel)
        for queue in left:
            queue.drain()
        del client.channels[channel.number]

    def lose_client(self, client: Client) -> None:
        """A connection is gone, and what lives with it."""
        left = [queue for channel in client.channels.values() for queue in self._leave_all(channel)]
        for channel in client.channels.values():
            self._give_back(channel)
        for queue in left:
            queue.drain()
        for queue in [queue for queue in self.topology.queues.values() if queue.owner is client]:
            self.delete_queue(queue)

    def _leave_all(self, channel: ChannelModel) -> list[QueueModel]:
        left = []
        while channel.consumers:
            _, consumer = channel.consumers.popitem()
            consumer.queue.leave(consumer)
            left.append(consumer.queue)
        return left

    def _give_back(self, channel: ChannelModel) -> None:
        channel.roll_back()
        self.settle(channel, sorted(channel.held), "requeue", is_lost=True)

    def cancel(self, consumer: ConsumerModel) -> None:
        del consumer.channel.consumers[consumer.tag]
        consumer.queue.leave(consumer)
        consumer.queue.drain()

    def delete_queue(self, queue: QueueModel) -> None:
        queue.is_deleted = True
        self.topology.delete_queue(queue)
        queue.purge()
        for consumer in list(queue.consumers):
            queue.leave(consumer)
            consumer.channel.consumers.pop(consumer.tag, None)
            consumer.client.expect_cancel(consumer)

    # Time and policies

    def expire_all(self) -> None:
        """All is done that was due until now."""
        for queue in list(self.topology.queues.values()):
            queue.expire()
            if queue.is_overdue:
                self.delete_queue(queue)

    def follow_policies(self) -> None:
        """Policies have changed: exchanges follow first, then all queues, which may have to drop something.

        Dead letters are published when all have followed.
        """
        policies, operator_policies = list(self.policies.values()), list(self.operator_policies.values())
        for name, exchange in self.topology.exchanges.items():
            policy = policy_for(policies, "exchanges", name)
            exchange.policy_alternate = policy.definition.get("alternate-exchange") if policy else None
        with self.deaths_held():
            for queue in list(self.topology.queues.values()):
                self._follow(queue, policies, operator_policies)

    def add_exchange(self, name: str, exchange: ExchangeModel) -> None:
        self.topology.exchanges[name] = exchange
        self.follow_policies()

    def add_queue(self, queue: QueueModel) -> None:
        self.topology.queues[queue.name] = queue
        self._follow(queue, list(self.policies.values()), list(self.operator_policies.values()))

    def _follow(self, queue: QueueModel, policies: list[PolicyModel], operator_policies: list[PolicyModel]) -> None:
        queue.follow(
            policy_for(policies, queue.policy_kind, queue.name),
            policy_for(operator_policies, queue.policy_kind, queue.name),
        )


def when_settled(channel: ChannelModel, tag: int) -> tuple[bool, str]:
    """Order what is settled at once: gets first, and the deliveries of each consumer."""
    consumer = channel.held[tag].consumer
    return (False, "") if consumer is None else (True, consumer.tag)


def when_lost(channel: ChannelModel, tag: int) -> tuple[bool, int, str]:
    """Order what is lost: the deliveries of each consumer first, and gets by the text of their tags."""
    consumer = channel.held[tag].consumer
    return (True, 0, str(tag)) if consumer is None else (False, consumer.number, "")
