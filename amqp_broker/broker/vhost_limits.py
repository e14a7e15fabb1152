"""The limits of a vhost: each change is durable and announced at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from amqp_broker.broker.admin.limits import VHOST_LIMITS, Limits

if TYPE_CHECKING:
    from amqp_broker.broker.observe.events import Events


class VHostLimits(Limits):
    """The limits `max-connections` and `max-queues` of a vhost."""

    __slots__ = ("_events", "_remember", "_vhost")

    def __init__(self, vhost: str, events: Events, remember: Callable[[], None]) -> None:
        """Create the limits of the vhost of this name; `remember` writes them to the journal."""
        super().__init__("limits", VHOST_LIMITS)
        self._vhost = vhost
        self._events = events
        self._remember = remember

    def restore(self, given: Mapping[str, int], is_listed: bool) -> None:
        """Set the limits from the journal."""
        self.given = dict(given)
        self.is_listed = is_listed

    def set(self, name: str, value: object) -> None:
        super().set(name, value)
        self._on_set()

    def replace(self, values: Mapping[str, object]) -> None:
        super().replace(values)
        self.is_listed = True
        if values:
            self._on_set()
        else:
            self._on_cleared()

    def clear(self, name: str) -> None:
        """Remove a limit. From then on the limits are listed, even if none was ever set."""
        super().clear(name)
        self.is_listed = True
        self._on_cleared()

    def remove(self) -> None:
        """Clear all limits, so that they are no parameter any more."""
        super().replace({})
        self.is_listed = False
        self._on_cleared()

    def _on_set(self) -> None:
        self.is_listed = True
        self._remember()
        self._events.parameter_set(self._vhost, "vhost-limits", "limits", dict(self.given))
        self._events.emit_action("vhost.limits.set", name="limits", **self.given)

    def _on_cleared(self) -> None:
        self._remember()
        self._events.parameter_cleared(self._vhost, "vhost-limits", "limits")
        self._events.emit_action("vhost.limits.cleared", name="limits")
