"""What clients were promised and saw while their broker was killed again and again, and whether it all fits together.

The broker's processes are numbered (`run`), and nothing of one is sure in the next but what was committed. What any
client was delivered before one published is committed when that publish is confirmed: `mark` before, `confirm` after.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


class Number(NamedTuple):
    """A message: who published it, and as its how-manieth."""

    publisher: str
    number: int

    def __str__(self) -> str:
        return f"{self.publisher}:{self.number}"


def number_of(body: bytes) -> Number:
    publisher, _, number = body.decode().partition(":")
    return Number(publisher, int(number))


# A copy of a message in a queue.
Copy = tuple[str, Number]


@dataclass
class Fate:
    """What is known of a copy."""

    # The runs that delivered it.
    delivered_in: set[int] = field(default_factory=set)
    # That a consumer sent an ack, which may not have arrived.
    is_acked: bool = False
    # That it was delivered, or settled, is committed.
    is_surely_delivered: bool = False
    is_surely_settled: bool = False


class Ledger:
    """Clients of all threads write into it; `errors` are sentences about what must not be."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.errors: list[str] = []
        # How many messages were in each queue at the end.
        self.left: dict[str, int] = {}
        # Confirmed messages, and the queues that they were routed to.
        self.confirmed: dict[Number, tuple[str, ...]] = {}
        self.fates: dict[Copy, Fate] = defaultdict(Fate)
        # What each run delivered, in order, and how much of that is committed.
        self._deliveries: dict[int, list[Copy]] = defaultdict(list)
        self._sure_until: dict[int, int] = defaultdict(int)
        # By run, queue, publisher and priority: the last message that came for the first time.
        self._last_first: dict[tuple[int, str, str, int], int] = {}

    def mark(self, run: int) -> int:
        """To be called before a publish: what was delivered until now is committed with it."""
        with self._lock:
            return len(self._deliveries[run])

    def confirm(self, run: int, mark: int, numbers: Iterable[Number], queues: tuple[str, ...]) -> None:
        """These messages were confirmed; they were published after `mark` was taken."""
        with self._lock:
            for number in numbers:
                self.confirmed[number] = queues
            for copy in self._deliveries[run][self._sure_until[run] : mark]:
                self.fates[copy].is_surely_delivered = True
            self._sure_until[run] = max(self._sure_until[run], mark)

    def deliver(self, run: int, queue: str, number: Number, redelivered: bool, priority: int = 0) -> Fate:
        """A consumer got a message."""
        with self._lock:
            fate = self.fates[queue, number]
            self._check(run, queue, number, redelivered, fate)
            if not redelivered:
                line = (run, queue, number.publisher, priority)
                if self._last_first.get(line, 0) > number.number:
                    self.errors.append(f"{queue}: {number} came after {self._last_first[line]}")
                self._last_first[line] = number.number
            fate.delivered_in.add(run)
            self._deliveries[run].append((queue, number))
            return fate

    def _check(self, run: int, queue: str, number: Number, redelivered: bool, fate: Fate) -> None:
        if fate.is_surely_settled:
            self.errors.append(f"{queue}: {number} came back though it was settled")
        if not redelivered and (run in fate.delivered_in or fate.is_surely_delivered):
            self.errors.append(f"{queue}: {number} came again and does not say so")

    def ack(self, queue: str, number: Number) -> None:
        """A consumer is about to ack a message."""
        with self._lock:
            self.fates[queue, number].is_acked = True

    def surely_settled(self, queue: str, numbers: Iterable[Number]) -> None:
        """What the channel that settled these published afterwards was confirmed."""
        with self._lock:
            for number in numbers:
                self.fates[queue, number].is_surely_settled = True

    def check_end(self, left: dict[str, list[tuple[Number, bool]]], died: dict[Number, list[str]]) -> None:
        """Check what was found in the queues at the end: messages with their redelivered flags, and in which queues the
        dead ones died."""
        for queue, found in left.items():
            for number, redelivered in found:
                self._check(0, queue, number, redelivered, self.fates[queue, number])
        present = {queue: [number for number, _ in found] for queue, found in left.items()}
        for queue, numbers in present.items():
            if len(set(numbers)) < len(numbers):
                self.errors.append(f"{queue}: {len(numbers) - len(set(numbers))} messages are there twice")
        sets = {queue: set(numbers) for queue, numbers in present.items()}
        for number, queues in died.items():
            for queue in queues:
                if number in sets.get(queue, ()) or queues.count(queue) > 1:
                    self.errors.append(f"{queue}: {number} died there, and is there twice")
        for number, queues_ in self.confirmed.items():
            for queue in queues_:
                fate = self.fates.get((queue, number))
                is_acked = fate is not None and fate.is_acked
                if not is_acked and number not in sets[queue] and queue not in died.get(number, ()):
                    self.errors.append(f"{queue}: {number} was confirmed and is lost")
