"""Kept dead letters, for at-least-once dead-lettering.

A quorum queue keeps them until all targets have them. Source: rabbit_fifo_dlx.erl, rabbit_fifo_dlx_worker.erl.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from amqp_broker.broker.queues.octets import octets_of
from amqp_broker.broker.scheduling.portions import WORK_MAX

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.durability.journal import Death
    from amqp_broker.broker.scheduling.timers import Timer

# RabbitMQ's defaults: how long a target has to take a dead letter (dead_letter_worker_publisher_confirm_timeout), and
# the number that may wait for their targets while others wait behind them (dead_letter_worker_consumer_prefetch).
RETRY_MS: Final = 180_000
TRIED_MAX: Final = 32


@dataclass(eq=False, slots=True)
class KeptDeadLetter:
    """A dead letter that its queue keeps; `on_routed` is called with it after each attempt, and whether all took it."""

    position: int
    message: Message
    reason: str
    died_at_ms: int
    on_routed: Callable[[KeptDeadLetter, bool], None]
    # Names of the queues that have taken it.
    taken_by: Collection[str] = ()
    retry_at_ms: int = 0


class KeptDeadLetters:
    """The kept dead letters of one queue, and the timer for the next attempt.

    `publish` sends one to its targets, `on_done` hears of each that all targets have taken. When a turn of the
    loop has no more time, those that were not tried wait for another.
    """

    __slots__ = (
        "_broker",
        "_counts_properties",
        "_is_trying",
        "_next_timer",
        "_on_done",
        "_publish",
        "_timer",
        "_timers",
        "_tried",
        "_untried",
        "octets",
    )

    def __init__(
        self,
        broker: Broker,
        publish: Callable[[KeptDeadLetter], None],
        on_done: Callable[[KeptDeadLetter], None],
        *,
        counts_properties: bool,
    ) -> None:
        self._broker = broker
        self._timers = broker.timers
        self._counts_properties = counts_properties
        # Set while others follow when there is time.
        self._next_timer: Timer | None = None
        self._publish: Callable[[KeptDeadLetter], None] = publish
        self._on_done: Callable[[KeptDeadLetter], None] = on_done
        self._timer: Timer | None = None
        # Those whose targets did not take them yet, in the order of their next attempts.
        self._tried: dict[KeptDeadLetter, None] = {}
        self._untried: deque[KeptDeadLetter] = deque()
        self._is_trying = False
        self.octets = 0

    def __len__(self) -> int:
        return len(self._tried) + len(self._untried)

    def add(self, position: int, message: Message, death: Death) -> None:
        """Keep a message that died now, and publish it if not too many wait."""
        self.restore(position, message, death)
        self._try_next()

    def restore(self, position: int, message: Message, death: Death) -> None:
        """Keep a message that died before a restart; `resume` publishes it."""
        self._untried.append(KeptDeadLetter(position, message, *death, self._on_routed))
        self.octets += octets_of(message, self._counts_properties)

    def resume(self) -> None:
        """Publish what a restart found, in the order in which it died."""
        self._untried = deque(sorted(self._untried, key=lambda letter: letter.died_at_ms))
        self._try_next()

    def _try_next(self) -> None:
        self._is_trying = True
        while self._untried and len(self._tried) < TRIED_MAX:
            if self._broker.work >= WORK_MAX:
                if self._next_timer is None:
                    self._next_timer = self._timers.at(self._untried[0].died_at_ms, self._go_on)
                break
            letter = self._untried.popleft()
            self._tried[letter] = None
            self._publish(letter)
        self._is_trying = False

    def _go_on(self, now: int) -> None:
        self._next_timer = None
        self._try_next()

    def _on_routed(self, letter: KeptDeadLetter, is_done: bool) -> None:
        if letter not in self._tried:
            return
        del self._tried[letter]
        if is_done:
            self.octets -= octets_of(letter.message, self._counts_properties)
            self._on_done(letter)
            if self._untried and not self._is_trying:
                self._try_next()
            return
        self._tried[letter] = None
        self._wake()

    def _wake(self) -> None:
        first = next(iter(self._tried), None)
        if first is not None and (self._timer is None or self._timer.callback is None):
            self._timer = self._timers.at(first.retry_at_ms, self._retry)

    def _retry(self, now: int) -> None:
        for letter in [one for one in self._tried if one.retry_at_ms <= now]:
            self._publish(letter)
        self._wake()

    def items(self) -> list[tuple[int, Message]]:
        """Return positions and messages, in the order in which they died."""
        letters = sorted(chain(self._tried, self._untried), key=lambda letter: letter.died_at_ms)
        return [(letter.position, letter.message) for letter in letters]

    def take_all(self) -> list[tuple[int, Message]]:
        """Remove all dead letters; return them with their positions."""
        taken = self.items()
        self._tried.clear()
        self._untried.clear()
        self.octets = 0
        if self._timer is not None:
            self._timer.cancel()
        return taken

    def stop(self) -> None:
        """The queue is deleted, and its dead letters are taken. Refer to it no longer, so that it is freed at once."""
        self._publish = self._on_done = lambda letter: None
