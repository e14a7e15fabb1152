"""The TLS handshakes that are under way."""

from __future__ import annotations

import ssl
from typing import Final
from weakref import WeakKeyDictionary

# Time that a peer has for its handshake (the default of RabbitMQ's ssl_handshake_timeout).
DURATION_S_MAX: Final = 5.0
# Each takes up to 200 KB.
COUNT_MAX: Final = 512


class Handshakes:
    """Bounds their number. Event loops do not report the end of one whose peer leaves or stalls: it is freed then."""

    def __init__(self, count_max: int = COUNT_MAX, duration_s_max: float = DURATION_S_MAX) -> None:
        self._count_max = count_max
        self._duration_s_max = duration_s_max
        # When each began, the oldest first.
        self._began_s: WeakKeyDictionary[ssl.SSLObject, float] = WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._began_s)

    def begin(self, connection: ssl.SSLObject, now_s: float) -> bool:
        """Count a handshake, unless as many as possible are under way; return whether it may go on."""
        if connection in self._began_s:
            return True
        if len(self._began_s) >= self._count_max:
            self._forget_stalled(now_s)
        if len(self._began_s) >= self._count_max:
            return False
        self._began_s[connection] = now_s
        return True

    def end(self, connection: ssl.SSLObject) -> None:
        """Count a handshake no more: it has succeeded or failed."""
        self._began_s.pop(connection, None)

    def _forget_stalled(self, now_s: float) -> None:
        """Forget those whose time is over; asyncio's own transport is freed only when garbage is collected."""
        for connection, began_s in list(self._began_s.items()):
            if began_s + self._duration_s_max > now_s:
                break
            del self._began_s[connection]
