"""What an open web page hears without asking: `GET /_broker/events`, as server-sent events.

    ?streams=overview,topology,messages&vhost=/

    overview    each second the value of /api/overview, with `at_ms` of a clock that nobody moves
    topology    `{"changed": ["queue", "binding"]}`: what was created, changed or removed, by the first word of events
    messages    `{"events": [...], "skipped": 12}`: the extended trace of a vhost (broker/trace.py), for administrators

Nothing is counted or traced while nobody listens. A page that does not read on costs one bounded ring: what did not
fit in was skipped, and it is told how much. Source of the format: HTML Standard, "Server-sent events".
"""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from aiohttp import web

from amqp_broker import fields
from amqp_broker.management.access import ADMINISTRATOR, MANAGEMENT, may
from amqp_broker.management.overview import overview
from amqp_broker.management.request import Request, bad_request, not_authorised, not_found
from amqp_broker.management.values import json_of

if TYPE_CHECKING:
    from amqp_broker.broker.access import User
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.management.node import Node
    from amqp_broker.message import Message

STREAMS: Final = frozenset({"overview", "topology", "messages"})
# What a listener has not been told yet is at most so much. What a page shows in a second, nobody reads anyway.
EVENTS_MAX: Final = 500
OCTETS_MAX: Final = 1_000_000
# What is told of one message: the beginning of its body, and its properties unless they are huge.
BODY_BYTES_MAX: Final = 2_000
HEADER_BYTES_MAX: Final = 8_000
# Times of the shell. What happens is collected this long, so that a burst is one piece of news.
COLLECT_S: Final = 0.1
OVERVIEW_S: Final = 1.0
# Who takes nothing for so long has gone without saying so.
STUCK_S: Final = 30.0


class Listener:
    """What one open page is to be told. `wake` is called when there is something after there was nothing."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._changed: dict[str, None] = {}
        # Each with the octets that it counts for.
        self._ring: deque[tuple[int, dict[str, Any]]] = deque()
        self._octets = 0
        self._skipped = 0

    def on_event(self, name: str, headers: dict[str, Any]) -> None:
        """Something was created, changed or removed (`Events.listen`)."""
        if not self._changed and not self._ring:
            self._wake()
        self._changed[name.partition(".")[0]] = None

    def on_message(self, event: str, name: str, headers: fields.Table, message: Message, body: bytes) -> None:
        """Something happened to a message (`VHost.tap`)."""
        if not self._changed and not self._ring:
            self._wake()
        told: dict[str, Any] = {"event": event, "name": name, **headers}
        octets = len(message.header)
        if event in ("publish", "deliver"):
            told["payload_bytes"] = len(body)
            told["payload"] = body[:BODY_BYTES_MAX]
            octets += len(told["payload"])
            if len(message.header) > HEADER_BYTES_MAX:
                told["properties"] = None
                octets -= len(message.header)
        self._ring.append((octets, told))
        self._octets += octets
        while len(self._ring) > EVENTS_MAX or self._octets > OCTETS_MAX:
            self._octets -= self._ring.popleft()[0]
            self._skipped += 1

    def take(self) -> list[tuple[str, Any]]:
        """Streams and what is new in them."""
        news: list[tuple[str, Any]] = []
        if self._changed:
            news.append(("topology", {"changed": list(self._changed)}))
            self._changed = {}
        if self._ring:
            events = [_plain(told) for _, told in self._ring]
            news.append(("messages", {"events": events, "skipped": self._skipped}))
            self._ring.clear()
            self._octets = self._skipped = 0
        return news


def _plain(told: dict[str, Any]) -> dict[str, Any]:
    """An event as JSON has it: text as text, octets that are none as base64."""
    if "payload" in told:
        payload, size = told.pop("payload"), told["payload_bytes"]
        text = _text(payload, is_cut=size > len(payload))
        told["payload_encoding"] = "base64" if text is None else "string"
        told["payload"] = base64.b64encode(payload).decode() if text is None else text
    return {name: json_of(value) for name, value in told.items()}


def _text(data: bytes, *, is_cut: bool = False) -> str | None:
    """The text that octets are, or None; a cut may have gone through the last character."""
    for end in range(len(data), max(len(data) - 4, -1) if is_cut else len(data) - 1, -1):
        try:
            return data[:end].decode()
        except UnicodeDecodeError:
            continue
    return None


class Wants:
    """What a listener asked for. Raises Refusal if there is no such stream, or not for this user."""

    def __init__(self, broker: Broker, user: User, query: Any) -> None:
        self.user = user
        self.streams = frozenset(query.get("streams", "overview,topology").split(","))
        unknown = self.streams - STREAMS
        if unknown:
            raise bad_request(f"unknown streams: {', '.join(sorted(unknown))}")
        self.needs = ADMINISTRATOR if "messages" in self.streams else MANAGEMENT
        self.vhost: VHost | None = None
        if "messages" in self.streams:
            if not may(user, ADMINISTRATOR):
                raise not_authorised("Not administrator user")
            self.vhost = broker.vhosts.get(query.get("vhost", broker.config.default_vhost))
            if self.vhost is None:
                raise not_found()

    def attach(self, broker: Broker, listener: Listener) -> None:
        if "topology" in self.streams:
            broker.events.listen(listener.on_event)
        if self.vhost is not None:
            self.vhost.tap(listener.on_message)

    def detach(self, broker: Broker, listener: Listener) -> None:
        broker.events.unlisten(listener.on_event)
        if self.vhost is not None:
            self.vhost.untap(listener.on_message)

    def are_allowed(self, broker: Broker, logged_in: bool) -> bool:
        """Whether the user is still one who may ask for this, and the vhost is still there."""
        if logged_in and (broker.users.get(self.user.name) is not self.user or not may(self.user, self.needs)):
            return False
        return self.vhost is None or broker.vhosts.get(self.vhost.name) is self.vhost


def frame(stream: str, value: Any) -> bytes:
    """One server-sent event."""
    return b"event: %s\ndata: %s\n\n" % (stream.encode(), msgspec.json.encode(value))


async def send(given: web.Request, broker: Broker, node: Node, user: User, *, logged_in: bool) -> web.StreamResponse:
    """Answer a request for events, until it goes away or may listen no more."""
    wants = Wants(broker, user, given.query)
    news = asyncio.Event()
    listener = Listener(news.set)
    headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    response = web.StreamResponse(headers=headers)
    await response.prepare(given)
    loop = asyncio.get_running_loop()
    wants.attach(broker, listener)
    try:
        await asyncio.wait_for(response.write(frame("hello", {"streams": sorted(wants.streams)})), STUCK_S)
        due = loop.time()
        while wants.are_allowed(broker, logged_in):
            told = []
            if news.is_set():
                news.clear()
                told = listener.take()
            if loop.time() >= due:
                due = loop.time() + OVERVIEW_S
                told.append(_tick(wants, broker, node, loop.time()))
            for stream, value in told:
                await asyncio.wait_for(response.write(frame(stream, value)), STUCK_S)
            await asyncio.sleep(COLLECT_S)
            await _wait(news, due - loop.time())
    except (ConnectionError, TimeoutError):
        pass  # it has gone
    finally:
        wants.detach(broker, listener)
    return response


async def _wait(news: asyncio.Event, timeout_s: float) -> None:
    try:
        await asyncio.wait_for(news.wait(), max(timeout_s, 0))
    except TimeoutError:
        return


def _tick(wants: Wants, broker: Broker, node: Node, now_s: float) -> tuple[str, Any]:
    """What is sent each second: the overview, or that we are still there."""
    if "overview" not in wants.streams:
        return "tick", {}
    broker.counters.collect()
    return "overview", {**overview(Request(broker, node, wants.user)), "at_ms": round(now_s * 1000)}
