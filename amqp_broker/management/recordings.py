"""What is published in a vhost from now on, as a recording that goes on until whoever asks goes away.

GET /_broker/recording/{vhost}?exchange=&routing_key=
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from aiohttp import web

from amqp_broker.broker.access import InternalUser
from amqp_broker.broker.recording import Recording
from amqp_broker.management.access import ADMINISTRATOR
from amqp_broker.management.recording_file import header_line, message_line, skipped_line
from amqp_broker.management.request import DEFAULT_EXCHANGE_NAME, Refusal, Request, Resource, Streamed, bad_request

CONTENT_TYPE: Final = "application/x-ndjson"
# Times of the shell: how often it is seen whether who asked is still there, and when he is given up.
LOOK_S: Final = 1.0
STUCK_S: Final = 30.0
# Messages that are written at once.
PORTION: Final = 64


def record(request: Request) -> Streamed:
    """GET /_broker/recording/{vhost}: what is published from now on, as a recording that goes on."""
    query = request.query
    unknown = set(query) - {"exchange", "routing_key"}
    if unknown:
        raise bad_request(f"unknown: {', '.join(sorted(unknown))}")
    exchange = query.get("exchange")
    exchange = "" if exchange == DEFAULT_EXCHANGE_NAME else exchange
    vhost = request.broker.vhosts.get(request.path["vhost"])
    if vhost is None:
        raise Refusal(404, "not_found", f"no vhost '{request.path['vhost']}'")
    if exchange is not None and exchange not in vhost.exchanges:
        raise Refusal(404, "not_found", f"no exchange '{exchange}' in {vhost}")

    async def send(given: web.Request) -> web.StreamResponse:
        return await _send(given, request, exchange, query.get("routing_key"))

    return Streamed(send)


async def _send(
    given: web.Request, request: Request, exchange: str | None, routing_key: str | None
) -> web.StreamResponse:
    """Answer until who asks goes away or may ask no more, or the vhost goes."""
    more, vhost, user = asyncio.Event(), request.vhost, request.user
    recording = Recording(vhost, exchange, routing_key, on_more=more.set)

    def goes_on() -> bool:
        is_user = isinstance(user, InternalUser) or vhost.broker.users.get(user.name) is user
        is_there = given.transport is not None and not given.transport.is_closing()
        return is_user and is_there and vhost.broker.vhosts.get(vhost.name) is vhost

    response = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})
    await response.prepare(given)
    recording.start()
    try:
        # Who has read this line knows that the recording has begun.
        await response.write(header_line(vhost.name, recording.started_at_us // 1000))
        while goes_on():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(more.wait(), LOOK_S)
            more.clear()
            taken, skipped = recording.take()
            for at in range(0, len(taken), PORTION):
                lines = b"".join(map(message_line, taken[at : at + PORTION]))
                await asyncio.wait_for(response.write(lines), STUCK_S)
            if skipped:
                await asyncio.wait_for(response.write(skipped_line(skipped)), STUCK_S)
    except (ConnectionError, TimeoutError):
        pass  # it has gone
    finally:
        recording.stop()
    return response


RESOURCES = (Resource("/_broker/recording/{vhost}", ADMINISTRATOR, {"GET": record}),)
