"""A publisher without a socket: which message to publish next, given the answers of the broker."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from itertools import takewhile

from amqp_broker.demo.ledger import ACKED, NACKED, RETURNED, UNANSWERED, Ledger
from amqp_broker.demo.strategies import Strategy


@dataclass(slots=True)
class Flight:
    """An unanswered attempt. `is_given_up`: its time is over, and the message is published again."""

    number: int
    attempt: int
    sent_ms: float
    is_given_up: bool = False


class Publisher:
    """Publishes messages 1 to `messages` with one strategy. Times are in ms of one clock.

    `in_flight` has the unanswered attempts by delivery tag, which counts from 1 on each channel. `retried` counts the
    repeated publishes by reason.
    """

    def __init__(self, strategy: Strategy, messages: int, window: int, patience_ms: float) -> None:
        self.strategy = strategy
        self.messages = messages
        self.window = min(strategy.window or window, window)
        self.patience_ms = patience_ms
        self.ledger = Ledger()
        self.in_flight: dict[int, Flight] = {}
        self.waited_for_count = 0
        self.is_blocked = False
        self.retried: Counter[str] = Counter()
        self.started_count = 0
        self._tag = 0
        self._again: deque[tuple[int, str]] = deque()
        self._quota = self.window
        # Timeouts begin anew when the connection is unblocked: a blocked one receives no answers.
        self._patient_from_ms = 0.0

    @property
    def is_done(self) -> bool:
        """True if the strategy has nothing more to do."""
        if self.strategy.resends:
            return len(self.ledger.confirmed) == self.messages
        return self.started_count == self.messages

    @property
    def may_publish(self) -> bool:
        if not self.strategy.resends:
            return True
        if self.is_blocked:
            return False
        if self.strategy.is_batched:
            if not self.waited_for_count:
                self._quota = self.window
            return self._quota > 0
        return self.waited_for_count < self.window

    def next(self, now_ms: float) -> tuple[int, int] | None:
        """Return number and attempt of the message to publish now, which is then in flight; None if there is none."""
        if not self.may_publish:
            return None
        number = self._next_number()
        if number is None:
            return None
        attempt = self.ledger.sent(number, now_ms)
        self._tag += 1
        self._quota -= 1
        self.in_flight[self._tag] = Flight(number, attempt, now_ms)
        self.waited_for_count += 1
        return number, attempt

    def _next_number(self) -> int | None:
        while self._again:
            number, reason = self._again.popleft()
            # A late confirm may have arrived meanwhile.
            if number not in self.ledger.confirmed:
                self.retried[reason] += 1
                return number
        if self.started_count == self.messages:
            return None
        self.started_count += 1
        return self.started_count

    # Answers of the broker

    def acked(self, tag: int, multiple: bool, now_ms: float) -> None:
        self._settle(tag, multiple, ACKED, now_ms)

    def nacked(self, tag: int, multiple: bool, now_ms: float) -> None:
        self._settle(tag, multiple, NACKED, now_ms)

    def _settle(self, tag: int, multiple: bool, outcome: str, now_ms: float) -> None:
        # Tags are in order.
        tags = list(takewhile(lambda one: one <= tag, self.in_flight)) if multiple else {tag} & self.in_flight.keys()
        for one in tags:
            flight = self.in_flight.pop(one)
            self.ledger.answered(flight.number, flight.attempt, outcome, now_ms)
            if not flight.is_given_up:
                self.waited_for_count -= 1
                known = self.ledger.attempts[flight.number][flight.attempt - 1].outcome
                if known != ACKED:
                    self._resend(flight.number, known)

    def returned(self, number: int, attempt: int, now_ms: float) -> None:
        """Note that a message was unroutable; its ack is still to come."""
        self.ledger.answered(number, attempt, RETURNED, now_ms)

    def disconnected(self, now_ms: float, reason: str) -> None:
        """Give up all messages in flight: the channel has ended, and the next one counts from 1 again.

        `reason` is that of the repeated publishes.
        """
        for flight in self.in_flight.values():
            self.ledger.answered(flight.number, flight.attempt, UNANSWERED, now_ms)
            if not flight.is_given_up:
                self._resend(flight.number, reason)
        self.in_flight.clear()
        self.waited_for_count = self._tag = 0
        self.is_blocked = False

    def blocked(self) -> None:
        self.is_blocked = True

    def unblocked(self, now_ms: float) -> None:
        self.is_blocked = False
        self._patient_from_ms = now_ms

    def give_up_late(self, now_ms: float) -> None:
        """Schedule messages without a timely answer for another publish; late answers still count."""
        if self.is_blocked or not self.strategy.resends:
            return
        for flight in self.in_flight.values():
            if not flight.is_given_up and now_ms - max(flight.sent_ms, self._patient_from_ms) >= self.patience_ms:
                flight.is_given_up = True
                self.waited_for_count -= 1
                self._resend(flight.number, "no answer in time")

    def _resend(self, number: int, reason: str) -> None:
        if self.strategy.resends:
            self._again.append((number, reason))
