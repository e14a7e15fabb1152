"""Delivery counts of the messages of a quorum queue."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Self

from mypy_extensions import mypyc_attr

from amqp_broker.amqp import fields
from amqp_broker.broker.durability.journal import Stored

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class ReturnCounts:
    """How often each message was returned, by position; only messages that were returned are in here.

    From 4.3 on, a return is also a failure if the message was rejected or its channel was lost. Then `failures` has the
    number of these, and the delivery limit applies to it. Before, the limit applies to all returns. Dead letters begin
    with the failures of the queues where they died.
    """

    def __init__(self, *, counts_failures: bool) -> None:
        self._counts_failures = counts_failures
        self.returns: dict[int, int] = {}
        self.failures: dict[int, int] = {}
        # The position of the failure that was noted last.
        self._failed: int | None = None
        # Messages in flight whose copies have the counts in their headers, without those headers.
        self._originals: dict[int, Message] = {}

    def frozen(self) -> Self:
        """Return a copy that stays."""
        frozen = copy.copy(self)
        frozen.returns, frozen.failures = self.returns.copy(), self.failures.copy()
        frozen._originals = self._originals.copy()
        return frozen

    def note_failure(self, position: int) -> None:
        """Count a failure, if this version does; the message is about to be returned."""
        if self._counts_failures:
            self.failures[position] = self.failures.get(position, 0) + 1
            self._failed = position

    def has_just_failed(self, position: int) -> bool:
        """Return whether the message is about to be returned as failed."""
        return self._failed == position

    def note_refusal(self, position: int) -> None:
        """Count a failure where only these two count: the message is given up, or lost with its channel (4.0)."""
        if not self._counts_failures:
            self.failures[position] = self.failures.get(position, 0) + 1

    def has(self, position: int) -> bool:
        """Return whether the message was delivered before, here or where it died."""
        return position in self.returns or position in self.failures

    def delivery_count(self, position: int, taken: Stored | None = None) -> int:
        """Return the count for the header x-delivery-count.

        `taken` is the message if it was taken before a restart and only the journal has it.
        """
        if taken is None:
            failures = self.failures.get(position, 0)
            return failures if self._counts_failures else self.returns.get(position, failures)
        if self._counts_failures:
            return taken.returns if taken.failures is None else taken.failures
        return taken.returns or 1

    def positions(self) -> set[int]:
        """Return the positions of all messages that were delivered before."""
        return {*self.returns, *self.failures}

    def note_return(self, position: int) -> int:
        """Count a return; return the number that the delivery limit applies to."""
        self._failed = None
        count = self.returns[position] = self.returns.get(position, 0) + 1
        return self.failures.get(position, 0) if self._counts_failures else count

    def on_recovered(self, position: int, returns: int, failures: int | None = None) -> None:
        """Set the counts of a message that was taken before a restart, as the journal has them.

        All returns are failures if `failures` is None.
        """
        # The journal counts what was returned when the process ended in good order. A message with no return there must
        # have been with a consumer when the process was killed.
        self.returns[position] = returns or 1
        if failures is None:
            failures = returns
        if self._counts_failures and failures:
            self.failures[position] = failures

    def move(self, position: int, to: int) -> None:
        """Carry the counts over to another position."""
        self.returns[to] = self.returns.pop(position)
        if (failures := self.failures.pop(position, None)) is not None:
            self.failures[to] = failures

    def stored(
        self, position: int, message: Message, deadline_ms: int | None, ready_at_ms: int | None = None
    ) -> Stored:
        """Return a returned message for the journal, with its counts."""
        returns = self.returns[position]
        failures = self.failures.get(position, 0) if self._counts_failures else returns
        return Stored(message, deadline_ms, returns, None if failures == returns else failures, ready_at_ms)

    def with_headers(self, message: Message, position: int) -> Message:
        """Return the message as it is delivered: with its counts in the headers, if it was returned before."""
        failures = self.failures.get(position)
        returns = self.returns.get(position, failures)
        if returns is None:
            return message
        self._originals[position] = message
        counts = {"x-delivery-count": returns}
        if self._counts_failures:
            counts = {"x-acquired-count": returns}
            if failures is not None:
                counts["x-delivery-count"] = failures
        properties = message.properties()
        headers = {name: fields.Long(count) for name, count in counts.items()}
        properties.headers = dict(sorted({**(properties.headers or {}), **headers}.items()))
        return message.with_properties(properties)

    def original(self, position: int, message: Message) -> Message:
        """Return a message in flight without the headers of `with_headers`."""
        return self._originals.get(position, message)

    def take_original(self, position: int, message: Message) -> Message:
        """Return `original`, and forget it."""
        return self._originals.pop(position, message)

    def forget(self, position: int) -> None:
        """Forget everything about a position."""
        self.returns.pop(position, None)
        self.failures.pop(position, None)
        self._originals.pop(position, None)
