"""The publishers that a full quorum queue refuses.

A quorum queue takes one message beyond its limit, and then refuses all publishers that it knows until no more than four
fifths of the limit are left. One that it does not know is refused only while there is more than the limit allows.
Source: rabbit_fifo.erl, evaluate_limit and register_enqueuer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amqp_broker.broker.queues.length_limit import LengthLimit

# Share of the limit to which a queue has to fall before it takes publishes again.
LOW: Final = 0.8


class Publisher:
    """Stands for a channel, or another publisher that waits for an answer, as long as that exists.

    Queues refer to it weakly: what publishes may be a compiled object, and these bear no weak references.
    """

    __slots__ = ("__weakref__",)


class RefusedPublishers:
    """The publishers of one queue: those that it knows, and which of these it refuses."""

    __slots__ = ("_known", "_refused")

    def __init__(self) -> None:
        self._known: WeakSet[Publisher] = WeakSet()
        self._refused: WeakSet[Publisher] = WeakSet()

    def refuse(self, publisher: Publisher, limit: LengthLimit) -> bool:
        """Return whether a publish is refused; the publisher is known from now on."""
        self._known.add(publisher)
        self.follow(limit)
        return publisher in self._refused

    def learn(self, publishers: Iterable[Publisher], limit: LengthLimit) -> None:
        """Know publishers that published before the queue had a limit at which it refuses."""
        self._known.update(publishers)
        self.follow(limit)

    def follow(self, limit: LengthLimit) -> None:
        """Refuse all publishers if the limit is exceeded, and none if there is room again."""
        if not limit.allows(1):
            self._refused.update(self._known)
        elif self._refused and limit.allows(LOW):
            self._refused.clear()
