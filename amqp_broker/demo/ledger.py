"""The ledger of a publisher: each attempt to publish a message, and the answer of the broker."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from dataclasses import dataclass

# The states of a message, in ascending order of what a reader should see first.
NOT_SENT, CONFIRMED, RETRIED, IN_FLIGHT, LOST = "01234"
# The outcomes of an attempt; unanswered ones will never be answered.
WAITING, ACKED, NACKED, RETURNED, UNANSWERED = "waiting", "acked", "nacked", "returned", "unanswered"


@dataclass(slots=True)
class Attempt:
    """One publish of a message. Times are in ms, of one clock."""

    sent_ms: float
    outcome: str = WAITING
    answered_ms: float = 0.0


class Ledger:
    """The attempts of each message by its number, which counts from 1 in the order of the first publish."""

    def __init__(self) -> None:
        self.attempts: dict[int, list[Attempt]] = {}
        # Numbers of messages that were acked at least once.
        self.confirmed: set[int] = set()
        # The number of attempts by outcome.
        self.outcomes: Counter[str] = Counter()
        # The state of each message that was published, in order.
        self._states = bytearray()
        # Latencies of acks in ms, in ascending order.
        self._latencies_ms: list[float] = []

    def sent(self, number: int, now_ms: float) -> int:
        """Note that a message is published; return the number of the attempt, from 1."""
        attempts = self.attempts.setdefault(number, [])
        attempts.append(Attempt(now_ms))
        self.outcomes[WAITING] += 1
        if number > len(self._states):
            self._states.extend(NOT_SENT.encode() * (number - len(self._states)))
        if number not in self.confirmed:
            self._states[number - 1] = ord(IN_FLIGHT)
        return len(attempts)

    def answered(self, number: int, attempt: int, outcome: str, now_ms: float) -> None:
        """Note the outcome of an attempt.

        The ack that follows a return is ignored: it does not mean that the broker has the message.
        """
        found = self.attempts[number][attempt - 1]
        if found.outcome == RETURNED:
            return
        self.outcomes[found.outcome] -= 1
        self.outcomes[outcome] += 1
        found.outcome, found.answered_ms = outcome, now_ms
        if outcome == ACKED:
            self.confirmed.add(number)
            insort(self._latencies_ms, now_ms - found.sent_ms)
            self._states[number - 1] = ord(CONFIRMED if len(self.attempts[number]) == 1 else RETRIED)
        elif number not in self.confirmed and attempt == len(self.attempts[number]):
            self._states[number - 1] = ord(LOST)

    def states(self, messages: int, cells_max: int) -> str:
        """Return the states of all messages in order; of more than `cells_max`, the highest state of a few each."""
        states = self._states.decode().ljust(messages, NOT_SENT)
        share = -(-messages // cells_max)
        return states if share <= 1 else "".join(max(states[at : at + share]) for at in range(0, messages, share))

    @property
    def sent_count(self) -> int:
        """The number of publishes, repeated ones included."""
        return self.outcomes.total()

    def latency_ms(self, share: float) -> float | None:
        """Return a percentile of the latencies of acks (0.5: the median) by nearest rank; None without acks."""
        count = len(self._latencies_ms)
        return self._latencies_ms[max(0, -int(-share * count // 1) - 1)] if count else None
