"""What is published in a vhost from now on, with its time: what a replay publishes again.

It is a tap (`VHost.tap`) of publishes alone. What it holds is taken by whoever writes it down; past `BYTES_MAX` that
nobody has taken, messages are skipped and counted, so that a recording never costs the broker its memory.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amqp_broker import fields
from amqp_broker.message import Message, SpecialMessage

if TYPE_CHECKING:
    from amqp_broker.broker.vhost import VHost

# What was published and not yet taken, in octets that it is reckoned at.
BYTES_MAX: Final = 64 * 1024 * 1024
# What a message costs beside its content.
MESSAGE_BYTES: Final = 512


class Recorded(NamedTuple):
    """A message as its publisher sent it, `at_us` after the recording began, by the broker's clock."""

    at_us: int
    message: Message
    mandatory: bool = False
    user: str = ""


class Recording:
    """Records from `start` to `stop`, once; `started_at_us` is since the epoch.

    With `exchange` (its name) or `routing_key` (`*` is any characters, `?` one of them) only what matches.
    """

    def __init__(
        self,
        vhost: VHost,
        exchange: str | None = None,
        routing_key: str | None = None,
        *,
        on_more: Callable[[], None] | None = None,
        bytes_max: int = BYTES_MAX,
    ) -> None:
        """`on_more` is called when there is something to take after there was nothing."""
        self.vhost = vhost
        self.exchange = exchange
        self.routing_key = routing_key
        self.started_at_us = 0
        self._on_more = on_more
        self._bytes_max = bytes_max
        self._bytes = 0
        self._held: list[Recorded] = []
        self._skipped = 0

    def start(self) -> None:
        self.started_at_us = self.vhost.broker.now_us()
        self.vhost.tap(self)

    def stop(self) -> None:
        self.vhost.untap(self)

    def __call__(self, kind: str, name: str, told: fields.Table, message: Message, body: bytes) -> None:
        """Something has happened to a message (a `Tap`)."""
        if kind != "publish" or not self._matches(message):
            return
        facts: dict[str, Any] = told
        size = MESSAGE_BYTES + len(message.content)
        if self._bytes + size > self._bytes_max and self._held:
            self._skipped += 1
            return
        is_first = not self._held
        at_us = max(0, facts["time_us"] - self.started_at_us)
        self._held.append(Recorded(at_us, _as_sent(message), facts["mandatory"], facts["user"]))
        self._bytes += size
        if is_first and self._on_more is not None:
            self._on_more()

    def _matches(self, message: Message) -> bool:
        if self.exchange is not None and message.exchange != self.exchange:
            return False
        return self.routing_key is None or fnmatchcase(message.routing_key, self.routing_key)

    def take(self) -> tuple[list[Recorded], int]:
        """What was published since the last time, and how many messages after it were skipped."""
        taken, self._held = self._held, []
        skipped, self._skipped = self._skipped, 0
        self._bytes = 0
        return taken, skipped


def _as_sent(message: Message) -> Message:
    """The message with the BCC header that was taken out for its consumers."""
    if not isinstance(message, SpecialMessage) or not message.blind_keys:
        return message
    properties = message.properties()
    properties.headers = {**(properties.headers or {}), "BCC": list(message.blind_keys)}
    return Message.with_properties(message, properties)
