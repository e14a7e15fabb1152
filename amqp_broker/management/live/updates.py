"""Live updates: `GET /_broker/events`, as server-sent events.

    overview    each second the value of /api/overview, with the findings about alarms (api/attention.py) and `at_ms`
                of a clock that is never moved
    topology    `{"changed": ["queue", "binding"]}`: the kinds of objects that were created, changed or removed
    messages    `{"events": [...], "skipped": 12}`: events of the messages of a vhost or of all (observe/trace.py),
                for administrators

Nothing is counted or traced without an open page. A page that does not read costs one bounded ring
(pending_updates.py), and learns how many events it missed. Source of the format: HTML Standard, "Server-sent events".
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web
from msgspec import Struct

from amqp_broker.broker.admin.access import InternalUser
from amqp_broker.broker.backends.questions import Unanswered
from amqp_broker.broker.scheduling.portions import Steps, Work
from amqp_broker.management.api.attention import finding_rows
from amqp_broker.management.api.overview import overview
from amqp_broker.management.attention.node_findings import alarms_of
from amqp_broker.management.http import json
from amqp_broker.management.http.answers import Streamed, bad_request, not_found
from amqp_broker.management.http.auth import ADMINISTRATOR, MANAGEMENT, answered, has_tag, require_tag
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.live.pending_updates import PendingUpdates

if TYPE_CHECKING:
    from amqp_broker.broker.vhost import VHost

STREAMS: Final = frozenset({"overview", "topology", "messages"})
# Seconds between updates, so that a burst is one update, and between overviews.
COLLECT_S: Final = 0.1
OVERVIEW_S: Final = 1.0
# Seconds until a write that does not end fails.
STUCK_S: Final = 30.0

endpoints = Endpoints()


class UpdatesQuery(Struct):
    """The streams to send, separated by commas, and the vhost of the stream `messages`; without it all vhosts."""

    streams: str = "overview,topology"
    vhost: str | None = None


class Subscription:
    """The streams that a request asks for. Raises Refusal for an unknown one, or one that the user must not see."""

    def __init__(self, request: Request) -> None:
        query = request.read_query(UpdatesQuery)
        self.broker, self.user = request.broker, request.user
        self.streams = frozenset(query.streams.split(","))
        unknown = self.streams - STREAMS
        if unknown:
            raise bad_request(f"unknown streams: {', '.join(sorted(unknown))}")
        self.tag = ADMINISTRATOR if "messages" in self.streams else MANAGEMENT
        # The vhost whose messages are wanted; None for all or none.
        self.vhost: VHost | None = None
        self._observed: list[VHost] = []
        self._pending: PendingUpdates | None = None
        if "messages" in self.streams:
            require_tag(self.user, ADMINISTRATOR)
            if query.vhost is not None:
                self.vhost = self.broker.vhosts.get(query.vhost)
                if self.vhost is None:
                    raise not_found()

    def attach(self, pending: PendingUpdates) -> None:
        """Collect updates from now on."""
        if "topology" in self.streams:
            self.broker.events.listen(pending.on_event)
        if "messages" not in self.streams:
            return
        self._pending = pending
        for vhost in list(self.broker.vhosts.values()) if self.vhost is None else [self.vhost]:
            self._observe(vhost, pending)
        if self.vhost is None:
            self.broker.events.listen(self._follow_vhosts)

    def detach(self, pending: PendingUpdates) -> None:
        """Collect no more updates."""
        self.broker.events.unlisten(pending.on_event)
        self.broker.events.unlisten(self._follow_vhosts)
        for vhost in self._observed:
            vhost.tracing.stop_observing(pending.on_message)

    def _observe(self, vhost: VHost, pending: PendingUpdates) -> None:
        self._observed.append(vhost)
        vhost.tracing.observe(pending.on_message)

    def _follow_vhosts(self, event: str, headers: dict[str, Any]) -> None:
        """Observe a new vhost, and forget a deleted one (`Events.listen`)."""
        if event == "vhost.created" and self._pending is not None:
            self._observe(self.broker.vhosts[headers["name"]], self._pending)
        elif event == "vhost.deleted":
            self._observed = [vhost for vhost in self._observed if vhost.name != headers["name"]]

    def is_allowed(self) -> bool:
        """Return whether the user still exists and has the tag, and the vhost still exists."""
        if not isinstance(self.user, InternalUser) and not self.user.asks:
            is_same = self.broker.users.get(self.user.name) is self.user
            if not is_same or not has_tag(self.user, self.tag):
                return False
        return self.vhost is None or self.broker.vhosts.get(self.vhost.name) is self.vhost


def frame(stream: str, value: Any) -> bytes:
    """Return one server-sent event."""
    return b"event: %s\ndata: %s\n\n" % (stream.encode(), json.encode(value))


@endpoints.on("GET /_broker/events", tag=MANAGEMENT, query=UpdatesQuery)
def updates(request: Request) -> Streamed:
    """Stream what the web page shows: numbers each second, changes of objects, and messages."""
    subscription = Subscription(request)

    async def send(given: web.Request) -> web.StreamResponse:
        return await _send(given, request, subscription)

    return Streamed(send)


async def _send(given: web.Request, request: Request, subscription: Subscription) -> web.StreamResponse:
    """Send updates until the client leaves or is not allowed any more."""
    wake = asyncio.Event()
    pending = PendingUpdates(wake.set)
    headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    response = web.StreamResponse(headers=headers)
    await response.prepare(given)
    loop = asyncio.get_running_loop()
    subscription.attach(pending)
    try:
        hello = frame("hello", {"streams": sorted(subscription.streams)})
        await asyncio.wait_for(response.write(hello), STUCK_S)
        due = loop.time()
        while subscription.is_allowed():
            updates: list[tuple[str, Any]] = []
            if wake.is_set():
                wake.clear()
                updates = pending.take()
            if loop.time() >= due:
                due = loop.time() + OVERVIEW_S
                updates.append(await _tick(request, subscription, loop))
            for stream, value in updates:
                await asyncio.wait_for(response.write(frame(stream, value)), STUCK_S)
            await asyncio.sleep(COLLECT_S)
            await _wait(wake, due - loop.time())
    except (ConnectionError, TimeoutError):
        pass  # the client has left
    finally:
        subscription.detach(pending)
    return response


async def _wait(wake: asyncio.Event, timeout_s: float) -> None:
    try:
        await asyncio.wait_for(wake.wait(), max(timeout_s, 0))
    except TimeoutError:
        return


async def _tick(request: Request, subscription: Subscription, loop: asyncio.AbstractEventLoop) -> tuple[str, Any]:
    """Return the update of each second: the overview, or a sign of life."""
    if "overview" not in subscription.streams:
        return "tick", {}
    work = Work(_overview(request), loop.time)
    while True:
        try:
            if work.run_portion():
                break
            await asyncio.sleep(0)
        except Unanswered as question:
            await answered(question)
            work = Work(_overview(request), loop.time)
    alarms = finding_rows(alarms_of(request.broker, request.node))
    return "overview", {**work.result, "alarms": alarms, "at_ms": round(loop.time() * 1000)}


def _overview(request: Request) -> Steps[dict[str, Any]]:
    yield from request.broker.collecting_counts()
    return (yield from overview(Request(request.broker, request.node, request.user)))
