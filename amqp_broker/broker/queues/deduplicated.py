"""Classic queues with `x-message-deduplication`: a message whose duplicate is in the queue is dropped.

The classes are subclasses, so other queues do no work for it. Source: rabbitmq-message-deduplication (noxdafox), its
README and rabbit_message_deduplication_queue.ex. There a restart empties the cache, and a purge forgets unacked
messages; here the keys are exactly those of the messages in the queue.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from amqp_broker.amqp.deduplication_key import header_name, key_of
from amqp_broker.broker.queues.classic import ClassicQueue
from amqp_broker.broker.queues.leaving_reasons import DUPLICATE
from amqp_broker.broker.queues.priority import PriorityQueue

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.queues.queue import QueueDeclaration
    from amqp_broker.broker.vhost import VHost


class HeldKeys:
    """The keys of the messages that a queue has, ready or unacked. No two of its messages have the same."""

    __slots__ = ("_header", "_keys")

    def __init__(self, header: str) -> None:
        self._header = header
        self._keys: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._keys)

    def _key(self, message: Message) -> bytes | None:
        return key_of(message.properties().headers or {}, self._header)

    def add(self, message: Message) -> bool:
        """Note a message that comes; return False for a duplicate."""
        key = self._key(message)
        if key is None:
            return True
        if key in self._keys:
            return False
        self._keys.add(key)
        return True

    def add_all(self, items: Iterable[tuple[int, Message, bool]]) -> None:
        """Note the messages that a restart or a snapshot has brought: items of a backlog."""
        for _, message, _ in items:
            self.add(message)

    def remove(self, message: Message) -> None:
        """Forget a message that has left."""
        key = self._key(message)
        if key is not None:
            self._keys.discard(key)

    def clear(self) -> None:
        """Forget all messages."""
        self._keys.clear()


def _admits(queue: ClassicQueue | PriorityQueue, keys: HeldKeys, message: Message) -> bool:
    """Note the key of a new message; drop a duplicate and return False. Its publisher gets an ack."""
    if queue.deadlines:
        # An expired message is no original.
        queue.expire()
    if keys.add(message):
        return True
    queue.vhost.broker.journal.note_duplicate()
    if queue.vhost.trace is not None:
        queue.vhost.trace.given_up(queue, message, DUPLICATE)
    return False


def _note_purge(queue: ClassicQueue | PriorityQueue, keys: HeldKeys) -> None:
    """Forget the ready messages, which are about to be dropped; unacked ones stay."""
    if not queue.unacked_count or queue.is_deleted:
        keys.clear()
        return
    for _, message, _ in queue.backlog.items():
        keys.remove(message)


class DeduplicatedQueue(ClassicQueue):
    """A classic queue without priorities that drops duplicates."""

    def __init__(self, vhost: VHost, declaration: QueueDeclaration) -> None:
        self.keys = HeldKeys(header_name(declaration.arguments))
        super().__init__(vhost, declaration)

    def _update_extras(self) -> None:
        super()._update_extras()
        self.has_extras = True
        self.trace = None

    def push_with_extras(self, message: Message, expiration_ms: int | None = None) -> None:
        if _admits(self, self.keys, message):
            super().push_with_extras(message, expiration_ms)

    def forget(self, position: int, message: Message) -> None:
        super().forget(position, message)
        self.keys.remove(message)

    def _give_up(self, message: Message, reason: str, *, is_refused: bool = False) -> None:
        if not is_refused:
            # Also of a message that expired when it came, and was never in the queue.
            self.keys.remove(message)
        super()._give_up(message, reason, is_refused=is_refused)

    def purge(self) -> int:
        _note_purge(self, self.keys)
        return super().purge()

    def on_restored(self) -> None:
        self.keys.add_all(self.backlog.items())
        super().on_restored()

    def recount(self) -> None:
        self.keys.add_all(self.backlog.items())
        super().recount()


class DeduplicatedPriorityQueue(PriorityQueue):
    """A classic queue with priorities that drops duplicates. The first message stays, whatever its priority."""

    def __init__(self, vhost: VHost, declaration: QueueDeclaration) -> None:
        self.keys = HeldKeys(header_name(declaration.arguments))
        super().__init__(vhost, declaration)

    def push_with_extras(self, message: Message, expiration_ms: int | None = None) -> None:
        if _admits(self, self.keys, message):
            super().push_with_extras(message, expiration_ms)

    def forget(self, position: int, message: Message) -> None:
        super().forget(position, message)
        self.keys.remove(message)

    def _give_up(self, message: Message, reason: str, *, is_refused: bool = False) -> None:
        if not is_refused:
            self.keys.remove(message)
        super()._give_up(message, reason, is_refused=is_refused)

    def purge(self) -> int:
        _note_purge(self, self.keys)
        return super().purge()

    def on_restored(self) -> None:
        self.keys.add_all(self.backlog.items())
        super().on_restored()

    def recount(self) -> None:
        self.keys.add_all(self.backlog.items())
        super().recount()
