"""The shell around a replay: its socket, and the time that it goes by."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from amqp_broker.errors import InvalidParameter
from amqp_broker.server.shovels import RemoteLink
from amqp_broker.shovel import definition
from amqp_broker.shovel.client import Client
from amqp_broker.shovel.definition import Uri
from amqp_broker.shovel.replay import Item, Replay

__all__ = ["Item", "Replay", "ReplayLost", "Replaying", "parse_uri"]

HEARTBEAT_S: Final = 10
US: Final = 1_000_000


def parse_uri(text: str, vhost: str | None = None) -> Uri:
    """Where to replay to; `vhost`, if any, instead of the one in the URL. Raises InvalidParameter."""
    uri = definition.parse_uri(text)
    if uri.is_local:
        raise InvalidParameter(f'"{definition.without_credentials(text)}" names no host')
    # As clients read a URL that ends with a slash.
    return replace(uri, vhost=vhost if vhost is not None else uri.vhost or "/")


class ReplayLost(Exception):
    """The broker was not reached, refused what was published, or is gone; the text says why."""


class Replaying:
    """Runs one replay to a broker in the loop that is running now.

    `on_settled(count)` is told how many messages more have been confirmed or nacked. With `advance`, which lets so many
    milliseconds pass, nobody waits: time is moved when all that was published before is confirmed.
    """

    kind = "replay"
    name = "of a recording"

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
        """Return when all is published and confirmed. Raises ReplayLost; the counts say how far it came."""
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
        """Wait until something has come, or so long. Raises ReplayLost."""
        settled = self._replay.confirmed + self._replay.nacked
        if timeout_s is None or timeout_s > 0:
            with contextlib.suppress(TimeoutError):  # the next is due
                await asyncio.wait_for(self._news.wait(), timeout_s)
        else:
            await asyncio.sleep(0)
        self._news.clear()
        self._on_settled(self._replay.confirmed + self._replay.nacked - settled)
        if self._reason:
            raise ReplayLost(self._reason)

    # What the link tells

    def lost(self, client: Client, mover: Replaying, reason: str) -> None:
        self._reason = self._reason or reason
        self._news.set()

    def flush(self) -> None:
        """Something has come, and may have made the client say something."""
        self._link.flush()
        self._news.set()

    def on_full(self, client: Client, is_full: bool) -> None:
        self._replay.on_full(client, is_full)
        self._news.set()
