"""x-max-length, x-max-length-bytes and x-overflow: a limit to the ready messages of a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqp_broker.broker.queues.octets import octets_of

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.queues.backlog import Backlog
    from amqp_broker.broker.queues.queue_settings import QueueSettings


class LengthLimit:
    """The limit of one queue. `ready_bytes` are the octets of ready messages, counted only while they are limited.

    Messages that a quorum queue withholds count, too: `withheld_count` is their number, `withheld_bytes` their octets.
    The octets of a message are those of its body or, with `counts_properties`, of its properties and its body.

    At the limit a queue either drops messages from its head (`drops_head`) or refuses new ones (`rejects_publish`).
    """

    __slots__ = (
        "_backlog",
        "bytes_max",
        "counts_properties",
        "drops_head",
        "length_max",
        "ready_bytes",
        "rejects_publish",
        "withheld_bytes",
        "withheld_count",
    )

    def __init__(self, backlog: Backlog, *, counts_properties: bool) -> None:
        self._backlog = backlog
        self.counts_properties = counts_properties
        self.length_max: int | None = None
        self.bytes_max: int | None = None
        self.drops_head = False
        self.rejects_publish = False
        self.ready_bytes = 0
        self.withheld_count = 0
        self.withheld_bytes = 0

    def follow(self, settings: QueueSettings) -> None:
        """Apply other settings."""
        self.length_max, self.bytes_max = settings.length_max, settings.bytes_max
        is_limited = self.length_max is not None or self.bytes_max is not None
        self.drops_head = is_limited and settings.overflow == "drop-head"
        self.rejects_publish = is_limited and not self.drops_head
        self.recount()

    def recount(self) -> None:
        """Count the octets anew."""
        if self.bytes_max is not None:
            self.ready_bytes = self._backlog.count_bytes()

    @property
    def is_exceeded(self) -> bool:
        """True if there is more than the limit allows, and something ready to drop."""
        return bool(len(self._backlog)) and not self.allows(1)

    def allows(self, share: float) -> bool:
        """Return whether what is there fits into this share of the limit."""
        if self.length_max is not None and len(self._backlog) + self.withheld_count > int(self.length_max * share):
            return False
        return self.bytes_max is None or self.ready_bytes + self.withheld_bytes <= int(self.bytes_max * share)

    def refuses(self, message: Message) -> bool:
        """Return whether the publisher of this message is refused."""
        if not self.rejects_publish:
            return False
        if self.length_max is not None and len(self._backlog) + self.withheld_count + 1 > self.length_max:
            return True
        if self.bytes_max is None:
            return False
        octets = octets_of(message, self.counts_properties)
        return self.ready_bytes + self.withheld_bytes + octets > self.bytes_max
