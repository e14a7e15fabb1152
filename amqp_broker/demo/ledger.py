"""What a publisher knows of its messages: each attempt to publish one, and what the broker said to it."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from dataclasses import dataclass

# What the broker said to an attempt; it has said nothing yet, or will not any more.
WAITING, ACKED, NACKED, RETURNED, UNANSWERED = "waiting", "acked", "nacked", "returned", "unanswered"


@dataclass(slots=True)
class Attempt:
    """One publish of a message. Times are in ms, of one clock."""

    sent_ms: float
    outcome: str = WAITING
    answered_ms: float = 0.0


class Ledger:
    """The attempts of each message, by its number from 1 on; a message is numbered when it is first published."""

    def __init__(self) -> None:
        self.attempts: dict[int, list[Attempt]] = {}
        # Numbers of messages that were acked at least once.
        self.confirmed: set[int] = set()
        # How many attempts ended in each way.
        self.outcomes: Counter[str] = Counter()
        # Latencies of acks in ms, in ascending order.
        self._latencies_ms: list[float] = []

    def sent(self, number: int, now_ms: float) -> int:
        """A message is published, once more perhaps; returns which attempt that is, from 1 on."""
        attempts = self.attempts.setdefault(number, [])
        attempts.append(Attempt(now_ms))
        self.outcomes[WAITING] += 1
        return len(attempts)

    def answered(self, number: int, attempt: int, outcome: str, now_ms: float) -> None:
        """The broker has answered an attempt, or is not going to.

        A returned message is acked afterwards, which means that the broker is done with it and not that it has it.
        """
        told = self.attempts[number][attempt - 1]
        if told.outcome == RETURNED:
            return
        self.outcomes[told.outcome] -= 1
        self.outcomes[outcome] += 1
        told.outcome, told.answered_ms = outcome, now_ms
        if outcome == ACKED:
            self.confirmed.add(number)
            insort(self._latencies_ms, now_ms - told.sent_ms)

    @property
    def sent_count(self) -> int:
        """How many publishes there were, those of the same message among them."""
        return self.outcomes.total()

    def latency_ms(self, share: float) -> float | None:
        """The latency within which this share of the acks came (0.5: the median); None if none has come.

        It is the smallest one that at least this share does not exceed ("nearest rank").
        """
        count = len(self._latencies_ms)
        return self._latencies_ms[max(0, -int(-share * count // 1) - 1)] if count else None
