"""The proof: the ledger of a publisher compared with the contents of the queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from amqp_broker.demo.ledger import ACKED, NACKED, RETURNED, UNANSWERED, WAITING, Ledger
from amqp_broker.demo.strategies import Strategy

# The minimum and maximum number of copies of an attempt in the queue.
COPIES: Final = {ACKED: (1, 1), NACKED: (0, 0), RETURNED: (0, 0), UNANSWERED: (0, 1), WAITING: (0, 1)}
# Reasons for lost messages by outcome, in the order of the output.
REASONS: Final = {
    NACKED: "nacked",
    RETURNED: "returned as unroutable",
    UNANSWERED: "unanswered when the channel or the connection ended",
    WAITING: "never answered",
}
BREACHES_MAX: Final = 10


@dataclass(frozen=True)
class Proof:
    """A queue compared with a ledger. `lost` counts missing messages by reason; `breaches` are broken promises.

    A strategy that `promises_delivery` may lose nothing.
    """

    strategy: str
    promise: str
    promises_delivery: bool
    messages: int
    sent: int
    confirmed: int
    queued: int
    distinct: int
    lost: Mapping[str, int]
    breaches: tuple[str, ...]

    @property
    def duplicates(self) -> int:
        """The number of copies that a consumer would drop by their message ids."""
        return self.queued - self.distinct

    @property
    def is_held(self) -> bool:
        """True if the strategy keeps its promise and the broker has everything it has confirmed."""
        return not self.breaches

    def as_dict(self) -> dict[str, Any]:
        """Return the proof as JSON values."""
        return {**asdict(self), "duplicates": self.duplicates, "is_held": self.is_held}


def prove(strategy: Strategy, messages: int, ledger: Ledger, queued: Mapping[tuple[int, int], int]) -> Proof:
    """Compare a ledger with the number of copies of each (message number, attempt) in the queue."""
    breaches: list[str] = []
    lost: Counter[str] = Counter()
    known = {(number, at) for number, attempts in ledger.attempts.items() for at in range(1, len(attempts) + 1)}
    breaches += [f"message {number} is in the queue and was never published" for number, _ in queued.keys() - known]
    for number, attempts in ledger.attempts.items():
        copies = [queued.get((number, at), 0) for at in range(1, len(attempts) + 1)]
        for attempt, count in zip(attempts, copies, strict=True):
            fewest, most = COPIES[attempt.outcome]
            if not fewest <= count <= most:
                breaches.append(f"message {number} was {attempt.outcome}, and is in the queue {count} times")
        if not any(copies):
            lost[REASONS.get(attempts[-1].outcome, "acked")] += 1
    if strategy.resends:
        missing = messages - len(ledger.confirmed)
        if missing:
            breaches.append(f"{missing} of {messages} messages were never confirmed")
    return Proof(
        strategy.name,
        strategy.promise,
        strategy.resends,
        messages,
        ledger.sent_count,
        len(ledger.confirmed),
        sum(queued.values()),
        len({number for number, _ in queued}),
        {reason: lost[reason] for reason in (*REASONS.values(), "acked") if lost[reason]},
        tuple(breaches[:BREACHES_MAX]),
    )
