"""Messages that full queues refuse, and that are to be dead-lettered when there is time."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from amqp_broker.broker.scheduling.portions import FLOOD_BYTES, LETTER_BYTES

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.vhost import VHost


class RefusedLetter(NamedTuple):
    """A message that `queue` refuses."""

    queue: Queue
    message: Message
    reason: str


class RefusedLetters:
    """The messages that wait, by vhost. One vhost takes turns with the others.

    Each may have many dead letters, which full queues refuse, too. Where they are many, the newest is the next, so that
    only a few wait for each death that a message can have.
    """

    def __init__(self) -> None:
        self._by_vhost: dict[VHost, deque[RefusedLetter]] = {}
        self._octets = 0

    def __bool__(self) -> bool:
        return bool(self._by_vhost)

    def waits_in(self, vhost: VHost) -> bool:
        """Return whether a message of this vhost waits."""
        return vhost in self._by_vhost

    def append(self, letter: RefusedLetter) -> None:
        self._by_vhost.setdefault(letter.queue.vhost, deque()).append(letter)
        self._octets += LETTER_BYTES + len(letter.message.content)

    def pop(self) -> RefusedLetter:
        """Take out the next message; its vhost is the last from now on."""
        vhost, letters = next(iter(self._by_vhost.items()))
        letter = letters.pop() if self._octets > FLOOD_BYTES else letters.popleft()
        self._octets -= LETTER_BYTES + len(letter.message.content)
        del self._by_vhost[vhost]
        if letters:
            self._by_vhost[vhost] = letters
        return letter
