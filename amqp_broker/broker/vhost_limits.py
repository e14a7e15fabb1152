"""The limits of a vhost: each change is durable and announced at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from amqp_broker.broker import journal_entries
from amqp_broker.broker.admin.limits import VHOST_LIMITS, Limits

if TYPE_CHECKING:
    from amqp_broker.broker.vhost import VHost


class VHostLimits(Limits):
    """The limits `max-connections` and `max-queues` of a vhost."""

    __slots__ = ("_vhost",)

    def __init__(self, vhost: VHost) -> None:
        super().__init__("limits", VHOST_LIMITS)
        self._vhost = vhost

    def restore(self, given: Mapping[str, int]) -> None:
        """Set the limits from the journal."""
        self.given = dict(given)

    def set(self, name: str, value: object) -> None:
        super().set(name, value)
        self._on_set()

    def replace(self, values: Mapping[str, object]) -> None:
        super().replace(values)
        if values:
            self._on_set()
        else:
            self._on_cleared()

    def clear(self, name: str) -> None:
        super().clear(name)
        self._on_cleared()

    def _on_set(self) -> None:
        vhost, events = self._vhost, self._vhost.broker.events
        vhost.broker.journal.define(*journal_entries.of_vhost(vhost.name, self, vhost.metadata))
        events.parameter_set(vhost.name, "vhost-limits", "limits", dict(self.given))
        events.emit_action("vhost.limits.set", name="limits", **self.given)

    def _on_cleared(self) -> None:
        vhost, events = self._vhost, self._vhost.broker.events
        vhost.broker.journal.define(*journal_entries.of_vhost(vhost.name, self, vhost.metadata))
        events.parameter_cleared(vhost.name, "vhost-limits", "limits")
        events.emit_action("vhost.limits.cleared", name="limits")
