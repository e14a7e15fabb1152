"""The commit gate: replies and confirms that promise durability wait until the journal has committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.journal_entries import JournalEntry
    from amqp_broker.session.channel.channel import Channel
    from amqp_broker.session.channel.confirms import Confirms
    from amqp_broker.session.wire.outbox import Outbox


class CommitGate:
    """Confirms and replies of one connection, as far as they wait for the journal.

    `confirming` lists those of the channels that published in the current read. `journal_bytes_before` is the journal's
    count of octets before that read: a read that changed the count has something to wait for.
    """

    __slots__ = ("_broker", "_outbox", "confirming", "journal_bytes_before", "waiting")

    def __init__(self, broker: Broker, outbox: Outbox) -> None:
        self._broker = broker
        self._outbox = outbox
        self.confirming: list[Confirms] = []
        self.journal_bytes_before = 0
        # Those of channels that wait for a commit, in the order in which they began to wait.
        self.waiting: dict[Confirms, None] = {}

    def confirm_all(self) -> None:
        """Confirm what all channels published in this read, now or after the commit."""
        confirming, self.confirming = self.confirming, []
        for confirms in confirming:
            self._confirm(confirms)

    def confirm_before_close(self, channel: Channel) -> None:
        """Confirm what a channel published in this read: it is about to close."""
        confirms = channel.confirms
        if confirms is not None and confirms in self.confirming:
            self.confirming.remove(confirms)
            self._confirm(confirms)

    def _confirm(self, confirms: Confirms) -> None:
        confirms.confirm(self._broker.journal.journal_bytes != self.journal_bytes_before)
        if confirms.uncommitted:
            self.waiting[confirms] = None
            self._broker.awaiting_commit[self] = None

    def hold(self, batch: int) -> None:
        """Hold all output until this batch of the journal is committed."""
        if batch > self._outbox.held_until and batch > self._broker.journal.committed:
            self._outbox.held_until = batch
            self._broker.awaiting_commit[self] = None
            self._broker.journal.require(batch)

    def hold_for_definition(self, definition: JournalEntry) -> None:
        """Hold a reply that promises that an object exists, whichever connection declared it."""
        self.hold(self._broker.journal.unsafe_in(definition[0]))

    def hold_for_messages(self) -> None:
        """Hold a reply that promises that messages were stored or removed."""
        self.hold(self._broker.journal.last_used_batch)

    def on_committed(self, committed: int) -> bool:
        """Release what waited for a batch up to `committed`; return whether the connection waits for a later one."""
        for confirms in list(self.waiting):
            confirms.on_committed(committed)
            if not confirms.uncommitted:
                del self.waiting[confirms]
        if self._outbox.held_until and self._outbox.held_until <= committed:
            self._outbox.held_until = 0
            self._outbox.request_flush()
        return bool(self.waiting or self._outbox.held_until)

    def discard(self) -> None:
        """Forget all confirms: the channels are gone. Held replies still leave."""
        self.confirming.clear()
        self.waiting.clear()
