"""The base of all queues: identity, policy, settling, consumers and deletion."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from amqp_broker.amqp.errors import AccessRefused
from amqp_broker.amqp.message import SpecialMessage
from amqp_broker.broker.counting.counters import AT_LEAST_ONCE, AT_MOST_ONCE, NO_DEAD_LETTERS
from amqp_broker.broker.queues.consumer_rotation import ConsumerRotation
from amqp_broker.broker.queues.queue_settings import QueueSettings
from amqp_broker.broker.queues.statistics import QueueStatistics
from amqp_broker.broker.queues.unused_expiry import UnusedExpiry

if TYPE_CHECKING:
    from amqp_broker.amqp import fields
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.admin.policies import Policy
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.durability.paged_buffer import PagedBuffer
    from amqp_broker.broker.exchanges.exchange import Binding
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue_trace import QueueTrace
    from amqp_broker.broker.queues.refused_publishers import Publisher
    from amqp_broker.broker.scheduling.portions import Steps
    from amqp_broker.broker.vhost import VHost

# A backlog is delivered in portions of about one socket buffer; the sockets are flushed in between.
DRAIN_BYTES_MAX: Final = 256 * 1024
DRAIN_MESSAGES_MAX: Final = 2048


class QueueDeclaration(NamedTuple):
    """The attributes of a queue to declare; `owner` is the connection of an exclusive one."""

    name: str
    arguments: fields.Table
    is_durable: bool = False
    is_auto_delete: bool = False
    owner: Connection | None = None


class Queue:
    """A queue of any type. `ready_count` and `unacked_count` are exact at any time.

    `consumers`, `ready_consumers` and `backpressured` are those of its `rotation`: the same objects, so that the plain
    path reaches them without a detour.
    """

    # RabbitMQ's name of the type.
    type: ClassVar[str]
    # Set where consumers may be subject to the limit of a channel (basic.qos global), and may be exclusive.
    takes_global_prefetch: ClassVar[bool] = True
    takes_exclusive_consumers: ClassVar[bool] = True
    # Set where a cancelled consumer stays until its deliveries are settled.
    keeps_leavers: ClassVar[bool] = False
    # Set where the count that answers basic.get has expired messages, if the client will settle (rabbit_fifo.erl).
    expires_after_get: ClassVar[bool] = False
    # Set where a full consumer loses its turn at once, and otherwise when a message comes for it.
    skips_full_consumers: ClassVar[bool] = False
    # Set where declaring an existing queue counts as a use, for x-expires.
    is_used_by_declaring: ClassVar[bool] = True
    # Set where the octets of a message are those of its properties and its body; otherwise its properties do not count.
    counts_properties = False
    # Set while the single active consumer gets nothing more until it has settled all its messages.
    is_quiescing = False
    # The queue as the publisher of dead letters that must arrive.
    publisher: Publisher | None = None

    def __init__(self, vhost: VHost, declaration: QueueDeclaration) -> None:
        broker = vhost.broker
        self.vhost = vhost
        self.name = declaration.name
        self.arguments = declaration.arguments
        self.is_durable = declaration.is_durable
        self.is_auto_delete = declaration.is_auto_delete
        self.owner = declaration.owner
        # The name of the user who declared it; "" for one that an older version has kept.
        self.creator = ""
        self.incoming: dict[Binding, None] = {}
        self.is_deleted = False
        # Set while the queue is among those whose counts have changed; and for good if it is deleted.
        self.is_changed = False
        self.unacked_count = 0
        # True if any feature (TTL, limit, journal, fault, trace) needs work per message. The fast path tests only this.
        self.has_extras = False
        # The vhost's trace if it is the only such feature, else None.
        self.trace: QueueTrace | None = None
        # Set while a fault rule may apply to deliveries or their acks.
        self.is_faulty = broker.faults.concerns_queue(vhost.name, self.name)
        # The first of its ranges in the journal; None while everything is in memory.
        self.range_id: int | None = None
        self.rotation = ConsumerRotation(is_single_active=self.arguments.get("x-single-active-consumer") is True)
        self.consumers = self.rotation.consumers
        self.ready_consumers = self.rotation.ready_consumers
        self.backpressured = self.rotation.backpressured
        # Set between two portions of a drain, while the sockets are flushed.
        self.is_undrained = False
        # Works in portions that are not done; until then, the queue serves nothing.
        self.holds = 0
        self.statistics = QueueStatistics(broker.now, vhost.counts.deliveries, broker.counters.deliveries[self.type])
        self.unused = UnusedExpiry(broker.timers, broker.now, self.consumers, self._delete)
        self.settings = QueueSettings()
        self.policy: Policy | None = None
        self.operator_policy: Policy | None = None

    def __str__(self) -> str:
        return f"queue '{self.name}' in vhost '{self.vhost.name}'"

    # Settings

    @abstractmethod
    def apply(self, settings: QueueSettings) -> None:
        """Follow these settings from now on: at the declaration, and when a policy changes."""

    def follow_faults(self) -> None:
        """Find out again whether a fault rule applies; the rules have changed."""
        self.is_faulty = self.vhost.broker.faults.concerns_queue(self.vhost.name, self.name)
        self._update_extras()

    def follow_trace(self) -> None:
        """Report to the trace of the vhost from now on; it has changed."""
        self._update_extras()

    @abstractmethod
    def _update_extras(self) -> None:
        """Set `has_extras`, and `trace`, to what holds now."""

    # The journal

    @property
    def ranges(self) -> range:
        """The ranges of the journal that the messages of a durable queue take; none of a transient queue."""
        return range(0) if self.range_id is None else range(self.range_id, self.range_id + 1)

    @property
    def buffers(self) -> list[PagedBuffer]:
        """The buffers whose messages are in the journal."""
        return []

    @abstractmethod
    def keep(self, range_id: int | None) -> None:
        """Keep messages in the journal, from range `range_id` on (None: in new ranges); take over its messages."""

    def on_restored(self) -> None:
        """Look at the messages that a restart found; all objects are restored, but nothing is given up yet."""
        self.note_change()
        for buffer in self.buffers:
            buffer.fill(1)
        self.apply(self.settings)

    @abstractmethod
    def catch_up(self) -> None:
        """Give up what should be given up after a restart; all queues are restored."""

    # Statistics

    def note_change(self) -> None:
        """Have the queue sampled, as its counts or lengths have changed."""
        # Publishes and deliveries of the plain path are noted when they are collected, all else at once.
        if not self.is_changed:
            self.is_changed = True
            self.vhost.broker.changed_queues[self] = None

    # Messages

    @property
    @abstractmethod
    def ready_count(self) -> int:
        """Number of messages that wait for a consumer."""

    @property
    def withheld_count(self) -> int:
        """Number of messages that are neither ready nor unacked; only quorum queues have any."""
        return 0

    @property
    def message_count(self) -> int:
        """Number of all messages of the queue."""
        return self.ready_count + self.unacked_count + self.withheld_count

    @abstractmethod
    def peek(self) -> Iterator[tuple[int, Message, bool]]:
        """Yield positions, ready messages and whether each was delivered before, in order of delivery."""

    def messages(self) -> Iterator[Message]:
        """Yield the ready messages in order of delivery."""
        return (message for _, message, _ in self.peek())

    @abstractmethod
    def push(self, message: Message) -> None:
        """Deliver a message to the ready consumer whose turn it is, or keep it."""

    def push_with_extras(self, message: Message, expiration_ms: int | None = None) -> None:
        """Push a message that may expire after `expiration_ms`."""
        self.push(message)

    def will_reject(self, message: Message) -> bool:
        """Return whether the queue is full, and refuses the message (x-overflow)."""
        return False

    def refuses(self, publisher: Publisher) -> bool:
        """Return whether the queue refuses all that this publisher publishes now; only quorum queues do."""
        return False

    def offer(self, message: Message, publisher: Publisher | None = None) -> bool:
        """Push a message, with its own expiration; return False if the queue is full and refuses it.

        `publisher` waits for the answer; None for a message that nothing watches.
        """
        if self.will_reject(message):
            self._refuse(message)
            return False
        self.take(message)
        return True

    def _refuse(self, message: Message) -> None:
        """Report that the queue refuses a message, and dead-letter that where it has to."""

    def take(self, message: Message) -> None:
        """Push a message, with its own expiration."""
        self.note_change()
        if isinstance(message, SpecialMessage) and message.expiration_ms is not None:
            self.push_with_extras(message, message.expiration_ms)
        else:
            self.push(message)

    @abstractmethod
    def pull(self, *, no_ack: bool = True) -> tuple[Message, int, bool] | None:
        """Take the next message; return it, its position, and whether it was delivered before. None if it is empty.

        With `expires_after_get` and without `no_ack`, expired messages behind it stay: the caller calls `expire`.
        """

    def note_pulled(self, position: int) -> None:  # most types do not count them
        """Note that a client has pulled this message and will settle it."""

    @property
    def consumer_count(self) -> int:
        """Number of consumers as declare-ok has it."""
        return len(self.consumers)

    @property
    def reported_consumer_count(self) -> int:
        """Number of consumers as the HTTP API and the metrics have it."""
        return len(self.consumers)

    @abstractmethod
    def return_to_head(self, position: int, message: Message) -> None:
        """Return the message that was pulled last, undelivered."""

    @property
    def has_deadlines(self) -> bool:
        """True if messages of this queue may expire."""
        return False

    @abstractmethod
    def expire(self) -> None:
        """Give up expired messages at the head."""

    @abstractmethod
    def drain(self) -> None:
        """Deliver a portion of the ready messages to ready consumers."""

    def as_delivered(self, message: Message, position: int) -> Message:
        """Return the message as a consumer gets it."""
        return message

    def as_kept(self, message: Message, position: int) -> Message:
        """Return a delivered message as the queue has it."""
        return message

    # Settling. For an ack, a channel decrements `unacked_count`, and calls `forget` if the queue has extras.

    @abstractmethod
    def forget(self, position: int, message: Message) -> None:
        """Remove a message that has left for good."""

    @abstractmethod
    def requeue(self, position: int, message: Message, *, is_lost: bool = False) -> int:
        """Put a delivered message back and return its position, which may be new.

        `is_lost` is set if its channel was lost. The caller calls `serve_returned` when all have come back.
        """

    def requeue_all(self, delivered: Sequence[tuple[int, Message]], *, has_failed: bool, is_lost: bool) -> None:
        """Do `requeue` for many messages, given by their positions; with `has_failed`, each counts as failed."""
        for position, message in delivered:
            if has_failed:
                self.note_failure(position)
            self.requeue(position, message, is_lost=is_lost)

    @property
    def limits_returns(self) -> bool:
        """True if a limit or a time to live applies to messages that came back."""
        return False

    @property
    def is_overfull(self) -> bool:
        """True while messages that came back exceed that limit."""
        return False

    @property
    def returns_to_tail(self) -> bool:
        """True if messages that a client returns go behind all others."""
        return False

    def serve_returned(self) -> None:
        """Deliver what has come back."""
        self.drain()

    @abstractmethod
    def reject(self, position: int, message: Message) -> None:
        """Give up a delivered message that was rejected."""

    @abstractmethod
    def note_failure(self, position: int) -> None:
        """Note that a message that is about to be requeued was rejected, or that its channel was lost."""

    def _give_up(self, message: Message, reason: str, *, is_refused: bool = False) -> None:
        """Dead-letter a message that has left the queue, or that it has refused."""
        self._count_given_up(message, reason, is_refused=is_refused)
        if self.settings.dead_letter_exchange is not None and not self.is_deleted:
            self.vhost.broker.dead_letter(self, message, reason, is_refused=is_refused)

    def _count_given_up(self, message: Message, reason: str, *, is_refused: bool = False) -> None:
        if not self.is_deleted:
            self.vhost.broker.counters.dead_lettered[self.type, self._strategy(), reason] += 1
        if self.vhost.trace is not None:
            self.vhost.trace.given_up(self, message, reason, is_refused=is_refused)

    @property
    def dead_letters_at_least_once(self) -> bool:
        """True if no dead letter may be lost; RabbitMQ promises that only of queues that refuse publishes."""
        return False

    def _strategy(self) -> str:
        """Return the strategy by which RabbitMQ counts a message that is given up now."""
        exchange = self.settings.dead_letter_exchange
        if exchange is None or exchange not in self.vhost.exchanges:
            return NO_DEAD_LETTERS
        return AT_LEAST_ONCE if self.dead_letters_at_least_once else AT_MOST_ONCE

    def _drain_next_portion(self) -> None:
        self.is_undrained, ready_count = False, self.ready_count
        if not self.is_deleted:
            self.drain()
        self.vhost.broker.work += max(0, ready_count - self.ready_count)

    def _pause_drain(self) -> None:
        """End a portion: the sockets are flushed before the next."""
        if not self.is_undrained:
            self.is_undrained = True
            self.vhost.broker.undrained.append(self._drain_next_portion)

    def hold(self) -> None:
        """Serve nothing until `end_hold`: messages leave the queue, or return, in portions."""
        self.holds += 1
        self._update_extras()

    def end_hold(self) -> None:
        """End one of these works. The caller calls `serve_returned`."""
        self.holds -= 1
        self._update_extras()

    def held(self) -> Steps[None]:
        """Wait in steps while the queue serves nothing."""
        while self.holds and not self.is_deleted:
            yield

    def use(self) -> None:
        """Note a use, for x-expires: the queue is read or consumed from."""
        self.unused.use(self.vhost.broker.now)

    def use_by_declaring(self) -> None:
        """Note a declaration, which is a use of most types."""
        if self.is_used_by_declaring:
            self.use()

    def use_by_policy(self) -> None:
        """Note that another policy applies, which is a use."""
        self.unused.last_used_ms = self.vhost.broker.now

    @property
    def idle_since_ms(self) -> int:
        """When the queue was last used, or a message came or went (ms since the epoch), as last collected."""
        return max(self.statistics.active_at_ms, self.unused.last_used_ms)

    # Consumers

    def subscribe(self, consumer: Consumer) -> None:
        """Add a consumer, which gets nothing until `resume`. Raise AccessRefused if another one is exclusive."""
        if self.takes_exclusive_consumers and not self.rotation.reserve(consumer):
            raise AccessRefused(f"{self} in exclusive use")
        self.rotation.add(consumer)
        self.vhost.broker.events.consumer_created(consumer)

    def unsubscribe(self, consumer: Consumer) -> None:
        """Remove a consumer; an auto-delete queue is deleted with its last."""
        rotation = self.rotation
        rotation.remove(consumer)
        self.vhost.broker.events.consumer_deleted(consumer)
        if self.is_deleted:
            if rotation.active_consumer is consumer:
                # It refers to this queue, which is to be freed at once.
                rotation.active_consumer = None
            return
        if not self.consumers:
            self.use()
            if self.is_auto_delete:
                self.vhost.remove_queue(self)
        if rotation.active_consumer is consumer:
            following = rotation.activate_next()
            if following is not None and following.can_take() and rotation.make_ready(following) and self.ready_count:
                # If the channel is closing, what it has not settled comes back first, and goes before all else.
                self._pause_drain()

    def keep_leaver(self, consumer: Consumer) -> None:  # most types do not
        """Note that a consumer was cancelled that has unsettled deliveries."""

    def forget_leaver(self, consumer: Consumer) -> None:  # most types have none
        """Forget a cancelled consumer, because nothing is left to settle for it."""

    def resume(self, consumer: Consumer) -> None:
        """Make a consumer that can take messages ready."""
        if self.rotation.make_ready(consumer) and self.ready_count:
            self.drain()

    # Deletion

    @abstractmethod
    def check_deletable(self, *, if_unused: bool, if_empty: bool) -> None:
        """Raise PreconditionFailed if the queue must not be deleted."""

    @abstractmethod
    def purge(self) -> int:
        """Drop all ready messages; return their number."""

    def _delete(self) -> None:
        if not self.is_deleted:
            self.vhost.remove_queue(self)

    def release(self) -> None:
        """Drop the messages, timers and ranges of a queue that was deleted."""
        self.unused.stop()
        self.purge()
        for buffer in self.buffers:
            buffer.drop()
