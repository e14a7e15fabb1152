"""The model of a queue: a sorted list, and rules that are applied one after the other.

The broker chooses the consumer of a message, so the model follows the deliveries that clients saw: the message at the
head goes to the consumer that got it, if that consumer could take it. Everything else (order, time, limits, drops and
dead letters) follows from the rules, and the broker's queue must be the same after each step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from tests.simulation.ledger import DELIVERY_LIMIT, EXPIRED, MAXLEN, REJECTED, Copy, Message, State
from tests.simulation.queue_settings import PolicyModel, settings_of

if TYPE_CHECKING:
    from tests.simulation.client import ChannelModel, Client, ConsumerModel
    from tests.simulation.world import World

Item = TypeVar("Item")

# A backlog is handed out in portions of about this size.
PORTION_BYTES = 256 * 1024
# Quorum queues: messages from this priority on are high, and this number of high ones precedes a normal one.
HIGH_MIN, WEIGHT = 5, 2
# Ranks of what a quorum queue has ready.
CAME_BACK, HIGH, NORMAL = -1, 0, 1


def in_turns(high: list[Item], normal: list[Item], turn: int, age: Callable[[Item], int]) -> list[Item]:
    """In the order in which they are served, but that nothing of high priority waits for what is younger."""
    high, normal, order = high[:], normal[:], []
    while high or normal:
        is_normal = not high or (turn == WEIGHT and normal and age(normal[0]) < age(high[0]))
        order.append((normal if is_normal else high).pop(0))
        turn = (turn + 1) % (WEIGHT + 1)
    return order


class QueueModel:
    """`ready` stands in the order of delivery; `consumers` in the order in which they came."""

    def __init__(
        self,
        world: World,
        name: str,
        arguments: dict[str, Any],
        *,
        owner: Client | None = None,
        is_durable: bool = False,
        is_auto_delete: bool = False,
    ) -> None:
        self.world = world
        self.name = name
        self.arguments = arguments
        self.owner = owner
        self.is_durable = is_durable and owner is None
        self.is_auto_delete = is_auto_delete
        self.is_quorum = arguments.get("x-queue-type") == "quorum"
        self.is_single_active = arguments.get("x-single-active-consumer") is True
        self.priority_max = arguments.get("x-max-priority", 0)
        self.is_deleted = False

        # Counts of this queue, publishes by exchange, and messages given up by reason.
        self.stats: Counter[str] = Counter()
        self.sources: Counter[str] = Counter()
        self.given_up: Counter[str] = Counter()

        self.ready: list[Copy] = []
        self.unacked: set[Copy] = set()
        self.arrived = 0
        self.returned = 0
        # How many of a quorum queue were served since one of normal priority had precedence.
        self.turn = 0

        self.consumers: list[ConsumerModel] = []
        self.active: ConsumerModel | None = None
        # Set while the active consumer gets nothing more, because one of higher priority waits until it is idle.
        self.is_quiescing = False
        self.has_exclusive_consumer = False
        self.used_at_ms = world.now
        # Channels that have published to a quorum queue that may refuse, and those of them that it refuses.
        self.publishers: list[ChannelModel] = []
        self.refused: list[ChannelModel] = []

        self.policies: tuple[PolicyModel | None, PolicyModel | None] = (None, None)
        self.settings = settings_of(self.is_quorum, arguments, None, None)

    def __repr__(self) -> str:
        return f"<{self.name} {self.arguments}>"

    @property
    def policy_kind(self) -> str:
        return "quorum_queues" if self.is_quorum else "classic_queues"

    @property
    def ready_bytes(self) -> int:
        return sum(copy.message.body_bytes for copy in self.ready)

    # Settings

    def obey(self, policy: PolicyModel | None, operator_policy: PolicyModel | None) -> None:
        self.policies = (policy, operator_policy)
        self.settings = settings_of(self.is_quorum, self.arguments, policy, operator_policy)

    def catch_up(self) -> None:
        """All is there after a restart: what is too much is dropped, what is due expires."""
        if self.settings.overflow == "drop-head":
            self._drop_overflow()
        self.expire()

    def follow(self, policy: PolicyModel | None, operator_policy: PolicyModel | None) -> None:
        """Other policies apply: what is there keeps its time to live, a limit counts at once."""
        if (policy, operator_policy) == self.policies:
            return
        self.use()
        before = self.settings
        self.obey(policy, operator_policy)
        dropped_before = before.overflow == "drop-head" and not self.is_quorum
        if dropped_before or self.settings.overflow == "drop-head":
            self._drop_overflow()
        self.expire()
        if self.is_quorum and self.settings.refuses:
            # The channels whose last message had a way here are publishers from now on.
            known = [channel for channel, queues in self.world.last_routes.items() if self in queues]
            self.publishers += [channel for channel in known if channel not in self.publishers]
            self._follow_limit()

    def use(self) -> None:
        self.used_at_ms = self.world.now

    @property
    def is_overdue(self) -> bool:
        """Return whether it has been unused for the time that it may live."""
        expires_ms = self.settings.expires_ms
        if expires_ms is None or self.consumers or (self.is_quorum and self.unacked):
            return False
        return self.world.now >= self.used_at_ms + expires_ms

    def keeps(self, message: Message) -> bool:
        """Return whether the message outlives the process in this queue."""
        return self.is_durable and (self.is_quorum or message.is_persistent)

    # Arrivals

    def accept(self, message: Message, channel: ChannelModel | None = None, *, is_closed: bool = False) -> bool:
        """A message is published to the queue by a channel, or by the broker. Returns False if it is refused.

        With `is_closed`, it is refused in any case.
        """
        settings = self.settings
        if is_closed or (settings.refuses and self._will_refuse(message, channel)):
            copy = self.world.ledger.enter(message, self, State.READY)
            if settings.overflow == "reject-publish-dlx":
                self._give_up(copy, MAXLEN, was_here=False)
            else:
                self.world.ledger.move(copy, State.DROPPED)
            return False
        self._push(message)
        self._follow_limit()
        return True

    def _will_refuse(self, message: Message, channel: ChannelModel | None) -> bool:
        if not self.is_quorum:
            return self._is_beyond(len(self.ready) + 1, self.ready_bytes + message.body_bytes)
        return channel is not None and self.refuses_channel(channel)

    def refuses_channel(self, channel: ChannelModel) -> bool:
        """Return whether a quorum queue refuses the channel, which it knows from now on."""
        if not self.settings.refuses:
            return False
        if channel not in self.publishers:
            self.publishers.append(channel)
        self._follow_limit()
        return channel in self.refused

    def _follow_limit(self) -> None:
        """Refuse publishes to a quorum queue above its limit, until four fifths of the limit are left."""
        if not (self.is_quorum and self.settings.refuses):
            return
        if self._is_beyond(len(self.ready), self.ready_bytes):
            self.refused = self.publishers[:]
        elif not self._is_beyond(len(self.ready), self.ready_bytes, share=0.8):
            self.refused = []

    def _push(self, message: Message) -> None:
        self.expire()
        copy = self.world.ledger.enter(message, self, State.READY)
        lives_ms = [ms for ms in (self.settings.ttl_ms, message.expiration_ms) if ms is not None]
        if lives_ms:
            copy.deadline_ms = self.world.now + min(lives_ms)
        copy.rank = copy.place = self._next_rank(message)
        self.ready.append(copy)
        self.arrange()
        # A message with a time to live of 0 reaches a consumer that waits.
        self._hand_out(in_time=copy)
        if not self.is_quorum and self.settings.ttl_ms == 0 and self.settings.dead_letter_exchange is None:
            # A classic queue does not keep it even behind others.
            if copy in self.ready:
                self.ready.remove(copy)
                self._give_up(copy, EXPIRED)
            return
        if not self.settings.refuses:
            self._drop_overflow()
        self.expire()

    def arrange(self) -> None:
        """Put what is ready into the order of delivery."""
        self.ready.sort(key=lambda copy: copy.rank)
        if self.is_quorum:
            lines: dict[int, list[Copy]] = {CAME_BACK: [], HIGH: [], NORMAL: []}
            for copy in self.ready:
                lines[copy.rank[0]].append(copy)
            self.ready = lines[CAME_BACK] + in_turns(
                lines[HIGH], lines[NORMAL], self.turn, age=lambda copy: copy.place[1]
            )

    def _next_rank(self, message: Message) -> tuple[int, int]:
        self.arrived += 1
        if self.is_quorum:
            return (HIGH if message.properties.get("priority", 0) >= HIGH_MIN else NORMAL, self.arrived)
        if self.priority_max:
            return (-min(message.properties.get("priority", 0), self.priority_max), self.arrived)
        return (0, self.arrived)

    def requeue(self, copy: Copy, is_lost: bool = False) -> None:
        """An unacked copy comes back, or is left by a lost channel; who calls this drains and trims the queue."""
        if self.is_deleted:
            self.world.ledger.move(copy, State.DROPPED)
            return
        self._use_by_settling()
        self._follow_limit()
        self.unacked.remove(copy)
        if self.is_quorum:
            copy.returns += 1
            copy.losses += is_lost
            limit = self.settings.delivery_limit
            if limit is not None and copy.returns > limit:
                self._give_up(copy, DELIVERY_LIMIT)
                return
            self.returned += 1
            copy.stored_returns = copy.returns
            if limit is None and not is_lost:
                # Behind all else of normal priority, whatever its own is.
                self.arrived += 1
                copy.rank = copy.place = (NORMAL, self.arrived)
            else:
                copy.rank = (CAME_BACK, self.returned)
        self.world.ledger.move(copy, State.READY)
        self.ready.append(copy)
        self.arrange()
        if self.is_quorum:
            self.expire()

    def end_requeue(self) -> None:
        """All that comes back at once is there: a classic queue drops what is too much, then what is late."""
        if not self.is_quorum and not self.is_deleted:
            self.trim()
            self.expire()

    @property
    def is_overfull(self) -> bool:
        """Return whether a quorum queue holds more than it may, until consumers have had their turn."""
        return self.is_quorum and not self.settings.refuses and self._is_beyond(len(self.ready), self.ready_bytes)

    def trim(self) -> None:
        """All has come back, and consumers have had their turn: what is too much is dropped."""
        if not self.settings.refuses:
            self._drop_overflow()
            self.expire()

    # Departures

    def drain(self) -> None:
        self.expire()
        self._hand_out()

    def _hand_out(self, in_time: Copy | None = None) -> None:
        """Deliver as the clients have heard it, a portion at most, and nothing that is too late."""
        portion = PORTION_BYTES
        while self.ready and portion >= 0:
            head = self.ready[0]
            heard = None if self._is_late(head) and head is not in_time else self.world.heard_of(head)
            if heard is None:
                return
            portion -= head.message.body_bytes
            self.world.deliver(heard, self.take_head())
            self.expire()

    def _pop_head(self) -> Copy:
        copy = self.ready.pop(0)
        if copy.rank[0] != CAME_BACK:
            self.turn = (self.turn + 1) % (WEIGHT + 1)
        return copy

    def take_head(self) -> Copy:
        copy = self._pop_head()
        copy.was_delivered = True
        self.unacked.add(copy)
        self.world.ledger.move(copy, State.UNACKED)
        return copy

    def _use_by_settling(self) -> None:
        """A quorum queue is used until the last message is settled, which is a use as well."""
        if self.is_quorum and not self.consumers:
            self.use()

    def settle(self, copy: Copy) -> None:
        self._use_by_settling()
        self.unacked.discard(copy)
        self.world.ledger.move(copy, State.SETTLED)

    def reject(self, copy: Copy) -> None:
        self._use_by_settling()
        self.unacked.discard(copy)
        self._give_up(copy, REJECTED)

    def expire(self) -> None:
        """Only the head expires; what is behind one that lives on has to wait."""
        while self.ready and self._is_late(self.ready[0]):
            self._give_up(self._pop_head(), EXPIRED)

    def _is_late(self, copy: Copy) -> bool:
        return copy.deadline_ms is not None and copy.deadline_ms <= self.world.now

    def _drop_overflow(self) -> None:
        dropped = []
        while self.ready and self._is_beyond(len(self.ready), self.ready_bytes):
            dropped.append(self._pop_head())
        for copy in reversed(dropped) if self.is_quorum else dropped:
            self._give_up(copy, MAXLEN)

    def _is_beyond(self, length: int, length_bytes: int, share: float = 1) -> bool:
        settings = self.settings
        return (settings.length_max is not None and length > int(settings.length_max * share)) or (
            settings.bytes_max is not None and length_bytes > int(settings.bytes_max * share)
        )

    def _give_up(self, copy: Copy, reason: str, was_here: bool = True) -> None:
        is_kept = not self.is_deleted and self.world.has_exchange(self.settings.dead_letter_exchange)
        if not self.is_deleted:
            self.given_up[reason] += was_here
            kind, strategy = "quorum" if self.is_quorum else "classic", "at_most_once" if is_kept else "disabled"
            self.world.tally.deaths[kind, strategy, reason] += 1
        if is_kept:
            self.world.ledger.move(copy, State.DEAD_LETTERED)
            self.world.dead_letter(copy, reason)
        else:
            self.world.ledger.move(copy, State.EXPIRED if reason == EXPIRED else State.DROPPED)

    def purge(self) -> int:
        """Drop what is ready; returns how many that were. A quorum queue counts its turns anew."""
        purged, self.ready = self.ready, []
        self.turn = 0
        self.given_up["purged"] += len(purged)
        for copy in purged:
            self.world.ledger.move(copy, State.DROPPED)
        return len(purged)

    # Consumers

    def join(self, consumer: ConsumerModel) -> None:
        self.consumers.append(consumer)
        if self.is_single_active and self.active is None:
            self.active = consumer
        elif self.is_quorum and self.active is not None and consumer.priority > self.active.priority:
            self.is_quiescing = True
            self.end_quiescing()
        self.drain()

    def end_quiescing(self) -> None:
        """The next consumer is the active one, if the one that is holds nothing."""
        if self.is_quiescing and self.active is not None and not self.active.in_flight:
            self.is_quiescing = False
            self.active = max(self.consumers, key=lambda other: other.priority)

    def leave(self, consumer: ConsumerModel) -> None:
        """A consumer is gone; the queue may go with it, or another become the active one. The caller drains."""
        self.consumers.remove(consumer)
        self.has_exclusive_consumer = False
        if self.is_deleted:
            self.is_quiescing = False
            return
        if not self.consumers:
            self.use()
            if self.is_auto_delete:
                self.world.delete_queue(self)
        if self.active is consumer:
            self.is_quiescing = False
            self.active = max(self.consumers, key=lambda other: other.priority, default=None)
