"""A capture: the messages published in a vhost from now on, with their times, for a replay.

A capture is an observer (`Tracing.observe`) of publishes alone. It holds messages until its owner takes them. Beyond
`BYTES_MAX`, messages are skipped and counted, so that a capture never exhausts the broker's memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amqp_broker.amqp.message import Message, SpecialMessage
from amqp_broker.broker.admin import globs

if TYPE_CHECKING:
    from amqp_broker.broker.vhost import VHost


# Limit of the estimated size of messages that are not yet taken.
BYTES_MAX: Final = 64 * 1024 * 1024
# Estimated size of a message without its content.
MESSAGE_BYTES: Final = 512


class CapturedMessage(NamedTuple):
    """A message as its publisher sent it, `at_us` after the start of the capture, by the broker's clock."""

    at_us: int
    message: Message
    mandatory: bool = False
    user: str = ""


class Capture:
    """Captures messages from `start` to `stop`; `started_at_us` is in µs since the epoch.

    `exchange` and `routing_key` select messages by the name of the exchange (`amq.default` for the default one) and by
    a glob (broker/admin/globs.py).
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
        """Create a capture; `on_more` is called with the first message that can be taken."""
        self.vhost = vhost
        self.exchange = None if exchange is None else globs.exchange_name(exchange)
        self.routing_key = routing_key
        self.started_at_us = 0
        self._on_more = on_more
        self._bytes_max = bytes_max
        self._bytes = 0
        self._held: list[CapturedMessage] = []
        self._skipped = 0

    def start(self) -> None:
        self.started_at_us = self.vhost.broker.now_us()
        self.vhost.tracing.observe(self)

    def stop(self) -> None:
        self.vhost.tracing.stop_observing(self)

    def __call__(self, kind: str, name: str, facts: dict[str, Any], message: Message | None, body: bytes) -> None:
        """Hold a publish (an `Observer`)."""
        if kind != "publish" or message is None or not self._matches(message):
            return
        size = MESSAGE_BYTES + len(message.content)
        if self._bytes + size > self._bytes_max and self._held:
            self._skipped += 1
            return
        is_first = not self._held
        at_us = max(0, facts["time_us"] - self.started_at_us)
        self._held.append(CapturedMessage(at_us, _as_sent(message), facts["mandatory"], facts["user"]))
        self._bytes += size
        if is_first and self._on_more is not None:
            self._on_more()

    def _matches(self, message: Message) -> bool:
        if self.exchange is not None and message.exchange != self.exchange:
            return False
        return self.routing_key is None or globs.matches(self.routing_key, message.routing_key)

    def take(self) -> tuple[list[CapturedMessage], int]:
        """Return the messages captured since the last call, and the number of those skipped after them."""
        taken, self._held = self._held, []
        skipped, self._skipped = self._skipped, 0
        self._bytes = 0
        return taken, skipped


def _as_sent(message: Message) -> Message:
    """Return the message with its BCC header, which is removed for consumers."""
    if not isinstance(message, SpecialMessage) or not message.blind_keys:
        return message
    properties = message.properties()
    properties.headers = {**(properties.headers or {}), "BCC": list(message.blind_keys)}
    return Message.with_properties(message, properties)
