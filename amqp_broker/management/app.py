"""The management API as an application of aiohttp: it turns requests into values for the handlers, and back.

What a request changes is journaled like what a client of AMQP changes, and it is answered when that is safe.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from aiohttp import web

from amqp_broker.broker.access import InternalUser, User
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.events import INTERNAL_USER
from amqp_broker.management.access import ANYBODY, CHALLENGE, login
from amqp_broker.management.node import Node
from amqp_broker.management.request import Answer, Refusal, Request, Resource, refusal_of
from amqp_broker.management.resources import RESOURCES

logger = logging.getLogger("amqp_broker.management")

# RabbitMQ's management.http.max_body_size.
BODY_BYTES_MAX: Final = 20_000_000
# How long an answer waits for a commit, if the disk fails.
COMMIT_TIMEOUT_S: Final = 30.0
JSON: Final = "application/json"


class CommitWait:
    """Stands among the connections that wait for a commit (`Broker.awaiting_commit`)."""

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.is_safe = asyncio.get_running_loop().create_future()

    def on_committed(self, committed: int) -> bool:
        """Whether to wait on."""
        if committed >= self.batch and not self.is_safe.done():
            self.is_safe.set_result(None)
        return not self.is_safe.done()


class Management:
    """Answers requests to one broker."""

    def __init__(self, broker: Broker, node: Node) -> None:
        self.broker = broker
        self.node = node
        self.operator = InternalUser("rmq-cli")

    def application(self, *, is_local: bool) -> web.Application:
        """An application for listeners; those who come in by a local one (the control socket) need no login."""
        application = web.Application(middlewares=[self._refuse], client_max_size=BODY_BYTES_MAX)
        for resource in RESOURCES:
            route = application.router.add_resource(resource.path)
            for method in resource.handlers:
                route.add_route(method, self._handler_of(resource, is_local=is_local))
        return application

    def _handler_of(self, resource: Resource, *, is_local: bool) -> Any:
        async def handle(given: web.Request) -> web.StreamResponse:
            if is_local or resource.needs == ANYBODY:
                user: User = self.operator
            else:
                user = login(self.broker, given.headers.get("Authorization"), resource.needs, given.remote or "")
            body = await given.read() if given.can_read_body else b""
            request = Request(
                self.broker,
                self.node,
                user,
                given.method,
                given.match_info,
                given.query,
                {name.lower(): value for name, value in given.headers.items()},
                body,
            )
            return respond(await self._call(resource, request))

        return handle

    async def _call(self, resource: Resource, request: Request) -> Any:
        broker, journal = self.broker, self.broker.journal
        broker.now = self.node.now()
        told = journal.told
        broker.events.actor = request.user.name
        try:
            value = resource.handlers[request.method](request)
        finally:
            broker.events.actor = INTERNAL_USER
            batch = journal.batch
            self.node.flush()
        if journal.is_durable and journal.told != told:
            wait = CommitWait(batch)
            broker.awaiting_commit[wait] = None
            try:
                await asyncio.wait_for(wait.is_safe, COMMIT_TIMEOUT_S)
            except TimeoutError:
                raise Refusal(503, "service_unavailable", "The store does not take what was changed") from None
            finally:
                broker.awaiting_commit.pop(wait, None)
        return value

    @web.middleware
    async def _refuse(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Errors as JSON: nobody gets a page of HTML, or a traceback."""
        try:
            response: web.StreamResponse = await handler(request)
        except web.HTTPException as error:
            reason = {404: "Not Found", 405: "Method Not Allowed", 413: "The body is too large"}.get(error.status)
            if reason is None:
                raise
            return refused(Refusal(error.status, reason.lower().replace(" ", "_"), reason), error.headers)
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                logger.exception("%s %s: internal error", request.method, request.path)
                refusal = Refusal(500, "internal_error", "Internal Server Error")
            return refused(refusal)
        return response


def respond(value: Any) -> web.Response:
    """The response to what a handler returned."""
    answer = value if isinstance(value, Answer) else Answer(200, value)
    if answer.value is None:
        return web.Response(status=answer.status, headers=answer.headers)
    body = answer.value if isinstance(answer.value, bytes) else msgspec.json.encode(answer.value)
    return web.Response(status=answer.status, headers={"Content-Type": JSON, **answer.headers}, body=body)


def refused(refusal: Refusal, headers: Mapping[str, str] | None = None) -> web.Response:
    """The response that says why not."""
    kept = {name: value for name, value in (headers or {}).items() if name == "Allow"}
    if refusal.status == 401:
        kept["WWW-Authenticate"] = CHALLENGE
    return respond(Answer(refusal.status, {"error": refusal.error, "reason": refusal.reason}, kept))
