"""The promises made to clients, and their observations, while their broker is killed repeatedly.

The broker's processes are numbered (`run`), and only what was committed is certain in the next run. A confirm commits
all deliveries from before its publish: call `mark` before it, and `confirm` after.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


class Number(NamedTuple):
    """A message: its publisher and its number."""

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
    """The history of a copy."""

    # The runs that delivered it.
    delivered_in: set[int] = field(default_factory=set)
    # A consumer has sent an ack, which may not have arrived.
    is_acked: bool = False
    # Its delivery or settle is committed.
    is_surely_delivered: bool = False
    is_surely_settled: bool = False


class Ledger:
    """The record of all threads; `errors` are sentences about broken promises."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.errors: list[str] = []
        # Number of messages in each queue at the end.
        self.left: dict[str, int] = {}
        # Confirmed messages, and the queues that they were routed to.
        self.confirmed: dict[Number, tuple[str, ...]] = {}
        self.fates: dict[Copy, Fate] = defaultdict(Fate)
        # Deliveries of each run in order, and the number of committed ones.
        self._deliveries: dict[int, list[Copy]] = defaultdict(list)
        self._sure_until: dict[int, int] = defaultdict(int)
        # The last message that was not redelivered, by run, queue, publisher and priority.
        self._last_first: dict[tuple[int, str, str, int], int] = {}

    def mark(self, run: int) -> int:
        """Return a mark before a publish, whose confirm commits all deliveries until now."""
        with self._lock:
            return len(self._deliveries[run])

    def confirm(self, run: int, mark: int, numbers: Iterable[Number], queues: tuple[str, ...]) -> None:
        """Note the confirms of messages that were published after `mark`."""
        with self._lock:
            for number in numbers:
                self.confirmed[number] = queues
            for copy in self._deliveries[run][self._sure_until[run] : mark]:
                self.fates[copy].is_surely_delivered = True
            self._sure_until[run] = max(self._sure_until[run], mark)

    def deliver(self, run: int, queue: str, number: Number, redelivered: bool, priority: int = 0) -> Fate:
        """Note a delivery to a consumer."""
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
        """Note that a consumer is about to ack a message."""
        with self._lock:
            self.fates[queue, number].is_acked = True

    def surely_settled(self, queue: str, numbers: Iterable[Number]) -> None:
        """Note that these settles are committed: a later publish on their channel was confirmed."""
        with self._lock:
            for number in numbers:
                self.fates[queue, number].is_surely_settled = True

    def check_end(self, left: dict[str, list[tuple[Number, bool]]], died: dict[Number, list[str]]) -> None:
        """Check the queues at the end: messages with redelivered flags, and the queues of dead messages."""
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
