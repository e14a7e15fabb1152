"""The updates that an open page has not received yet, in a bounded ring."""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.amqp import fields
from amqp_broker.management.documents.values import json_of

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message

# Bounds of the ring. The oldest events are dropped; a page shows fewer in a second.
EVENTS_MAX: Final = 500
OCTETS_MAX: Final = 1_000_000
# Bounds of one message: the beginning of its body, and properties up to a size.
BODY_BYTES_MAX: Final = 2_000
HEADER_BYTES_MAX: Final = 8_000


class PendingUpdates:
    """The pending updates of one page; `wake` is called for the first one after there were none."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._changed: dict[str, None] = {}
        # Size in octets, and event.
        self._ring: deque[tuple[int, dict[str, Any]]] = deque()
        self._octets = 0
        self._skipped = 0

    def on_event(self, name: str, headers: dict[str, Any]) -> None:
        """Note that an object was created, changed or removed (`Events.listen`)."""
        if not self._changed and not self._ring:
            self._wake()
        self._changed[name.partition(".")[0]] = None

    def on_message(self, event: str, name: str, headers: fields.Table, message: Message | None, body: bytes) -> None:
        """Note an event of a message (`Tracing.observe`)."""
        if not self._changed and not self._ring:
            self._wake()
        row: dict[str, Any] = {"event": event, "name": name, **headers}
        octets = 0 if message is None else len(message.header)
        if message is not None and event in ("publish", "deliver"):
            row["payload_bytes"] = len(body)
            row["payload"] = body[:BODY_BYTES_MAX]
            octets += len(row["payload"])
            if len(message.header) > HEADER_BYTES_MAX:
                row["properties"] = None
                octets -= len(message.header)
        self._ring.append((octets, row))
        self._octets += octets
        while len(self._ring) > EVENTS_MAX or self._octets > OCTETS_MAX:
            self._octets -= self._ring.popleft()[0]
            self._skipped += 1

    def take(self) -> list[tuple[str, Any]]:
        """Return the streams that have updates, each with its value."""
        updates: list[tuple[str, Any]] = []
        if self._changed:
            updates.append(("topology", {"changed": list(self._changed)}))
            self._changed = {}
        if self._ring:
            events = [_plain(row) for _, row in self._ring]
            updates.append(("messages", {"events": events, "skipped": self._skipped}))
            self._ring.clear()
            self._octets = self._skipped = 0
        return updates


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return an event as JSON, with a payload that is not text in base64."""
    if "payload" in row:
        payload, size = row.pop("payload"), row["payload_bytes"]
        text = _text(payload, is_cut=size > len(payload))
        row["payload_encoding"] = "base64" if text is None else "string"
        row["payload"] = base64.b64encode(payload).decode() if text is None else text
    return {name: json_of(value) for name, value in row.items()}


def _text(data: bytes, *, is_cut: bool = False) -> str | None:
    """Return octets as text, or None; with `is_cut` the last character may be incomplete."""
    for end in range(len(data), max(len(data) - 4, -1) if is_cut else len(data) - 1, -1):
        try:
            return data[:end].decode()
        except UnicodeDecodeError:
            continue
    return None
