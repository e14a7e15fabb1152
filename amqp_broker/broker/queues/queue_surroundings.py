"""The parts of a connection, a vhost and a broker that queues need."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.counters import Counters, DeliveryCounts
    from amqp_broker.broker.durability.journal import Journal
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.kept_dead_letters import KeptDeadLetter
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.queues.queue_trace import QueueTrace
    from amqp_broker.broker.queues.refused_publishers import Publisher
    from amqp_broker.broker.timers import Timers
    from amqp_broker.settings.profiles import Profile


class QueueOwner(Protocol):
    """The connection that an exclusive queue belongs to."""

    @property
    def name(self) -> str: ...

    @property
    def peer_host(self) -> str: ...

    @property
    def peer_port(self) -> int: ...

    @property
    def exclusive_queues(self) -> set[Queue]: ...


class UnackedMessages(Protocol):
    """A channel, as the holder of unacked messages."""

    def unacked_messages(self) -> Iterable[tuple[Queue, Message]]:
        """Yield the unacked messages with their queues."""
        ...


class QueueEvents(Protocol):
    """The events that queues report."""

    def consumer_created(self, consumer: Consumer) -> None:
        """Report a new consumer."""
        ...

    def consumer_deleted(self, consumer: Consumer) -> None:
        """Report the end of a consumer."""
        ...


class QueueFaults(Protocol):
    """The fault rules, as far as they concern queues."""

    def concerns_queue(self, vhost: str, queue: str) -> bool:
        """Return whether a rule may hit deliveries of the queue, or their acks."""
        ...

    def deliver(
        self, queue: Queue, consumer: Consumer, message: Message, delivered: Message, position: int, redelivered: bool
    ) -> None:
        """Deliver a message of a queue that a rule may concern."""
        ...


class QueueBroker(Protocol):
    """The broker of a queue."""

    is_congested: bool
    routing_work: int
    # The work of this turn of the loop.
    work: int

    @property
    def now(self) -> int: ...

    @property
    def profile(self) -> Profile: ...

    @property
    def timers(self) -> Timers: ...

    @property
    def journal(self) -> Journal: ...

    @property
    def counters(self) -> Counters: ...

    @property
    def events(self) -> QueueEvents: ...

    @property
    def faults(self) -> QueueFaults: ...

    @property
    def changed_queues(self) -> OrderedDict[Queue, None]: ...

    @property
    def undrained(self) -> list[Callable[[], None]]: ...

    @property
    def freed_consumers(self) -> list[Consumer]: ...

    def resume_freed_consumers(self) -> None:
        """Deliver to consumers of which messages were settled in this read."""
        ...

    @property
    def is_routing_dead_letters(self) -> bool:
        """True while a dead letter goes to its targets."""
        ...

    def dead_letters_held(self, *, serves_freed: bool = True) -> AbstractContextManager[None]:
        """Have dead letters wait until the end of the block."""
        ...

    def free_later(self, messages: deque[Any]) -> None:
        """Free messages that no queue has any more in batches, between which the sockets are served."""
        ...

    def dead_letter(
        self, queue: Queue, message: Message, reason: str, kept: KeptDeadLetter | None = None, is_refused: bool = False
    ) -> None:
        """Dead-letter a message that a queue has given up or refused. The queue hears of a kept one by `on_routed`."""
        ...


class QueueVHostCounts(Protocol):
    """The counts of a vhost that its queues add to."""

    @property
    def deliveries(self) -> DeliveryCounts: ...


class QueueVHost(Protocol):
    """The vhost of a queue."""

    @property
    def name(self) -> str: ...

    @property
    def broker(self) -> QueueBroker: ...

    @property
    def trace(self) -> QueueTrace | None: ...

    @property
    def counts(self) -> QueueVHostCounts: ...

    @property
    def exchanges(self) -> Container[str]: ...

    def remove_queue(self, queue: Queue) -> None:
        """Remove a queue with its messages, bindings and consumers."""
        ...

    def publishers_to(self, queue: Queue) -> Iterator[Publisher]:
        """Yield the channels whose last publish had a route to a queue."""
        ...
