"""The shell around a replay: its socket and its clock."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.server.shovel_links import RemoteLink
from amqp_broker.shovel import shovel_definition
from amqp_broker.shovel.amqp_client import Client
from amqp_broker.shovel.capture_replay import Item, Replay
from amqp_broker.shovel.shovel_definition import Uri

__all__ = ["Item", "Replay", "ReplayLost", "ReplayRunner", "parse_uri"]

HEARTBEAT_S: Final = 10
US: Final = 1_000_000


def parse_uri(text: str, vhost: str | None = None) -> Uri:
    """Parse the URL of the target; `vhost`, if given, replaces the vhost of the URL. Raise InvalidParameter."""
    uri = shovel_definition.parse_uri(text)
    if uri.is_local:
        raise InvalidParameter(f'"{shovel_definition.without_credentials(text)}" names no host')
    # Clients read a URL that ends with a slash as the vhost /.
    return replace(uri, vhost=vhost if vhost is not None else uri.vhost or "/")


class ReplayLost(Exception):
    """The target is unreachable, refuses a message, or has closed the connection; the text is the reason."""


class ReplayRunner:
    """Runs one replay in the current event loop.

    `on_settled(count)` is called with the number of messages that were confirmed or nacked since the last call. With
    `advance(ms)` the replay does not wait: it moves the clock as soon as all earlier messages are confirmed.
    """

    kind = "replay"
    name = "of a capture"

    def __init__(
        self,
        replay: Replay,
        uri: Uri,
        *,
        on_settled: Callable[[int], None] = lambda count: None,
        advance: Callable[[int], None] | None = None,
    ) -> None:
        self.vhost = uri.vhost or "/"
        self._replay = replay
        self._uri = uri
        self._on_settled = on_settled
        self._advance = advance
        self._news = asyncio.Event()
        self._reason = ""
        heartbeat_s = uri.heartbeat_s if "heartbeat" in uri.query else HEARTBEAT_S
        self._client = Client(
            replay, uri.user, uri.password, self.vhost, heartbeat_s, "amqp-broker replay", "amqp-broker replay"
        )
        self._link = RemoteLink(self, self._client, self)

    async def run(self) -> None:
        """Publish all messages, and return when they are confirmed. Raise ReplayLost; the counts remain valid then."""
        self._link.connect(self._uri)
        try:
            if self._advance is None:
                await self._run_in_real_time()
            else:
                await self._run_in_moved_time(self._advance)
        finally:
            self._client.close()
            self._link.flush()
            self._link.close()

    async def _run_in_real_time(self) -> None:
        loop = asyncio.get_running_loop()
        await self._get_ready()
        while not self._replay.is_done:
            due_us = self._replay.tick(int(loop.time() * US))
            self._link.flush()
            await self._wait(None if due_us is None else due_us / US - loop.time())

    async def _run_in_moved_time(self, advance: Callable[[int], None]) -> None:
        now_us = moved_ms = 0
        await self._get_ready()
        while not self._replay.is_done:
            due_us = self._replay.tick(now_us)
            self._link.flush()
            if due_us is None or self._replay.unconfirmed:
                await self._wait(None)
                continue
            now_us = due_us
            advance(now_us // 1000 - moved_ms)
            moved_ms = now_us // 1000

    async def _get_ready(self) -> None:
        while not self._replay.is_ready:
            await self._wait(None)

    async def _wait(self, timeout_s: float | None) -> None:
        """Wait until the link has received something, or until the timeout. Raise ReplayLost."""
        settled = self._replay.confirmed + self._replay.nacked
        if timeout_s is None or timeout_s > 0:
            with contextlib.suppress(TimeoutError):  # the next message is due
                await asyncio.wait_for(self._news.wait(), timeout_s)
        else:
            await asyncio.sleep(0)
        self._news.clear()
        self._on_settled(self._replay.confirmed + self._replay.nacked - settled)
        if self._reason:
            raise ReplayLost(self._reason)

    # Called by the link

    def lost(self, client: Client, mover: ReplayRunner, reason: str) -> None:
        self._reason = self._reason or reason
        self._news.set()

    def flush(self) -> None:
        """Send the output of the client, and wake the replay."""
        self._link.flush()
        self._news.set()

    def on_full(self, client: Client, is_full: bool) -> None:
        self._replay.on_full(client, is_full)
        self._news.set()
