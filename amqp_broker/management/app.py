"""The management API as an application of aiohttp: it turns requests into values for the handlers, and back.

What a request changes is journaled like what a client of AMQP changes, and it is answered when that is safe.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from amqp_broker.broker.access import InternalUser, User
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.events import INTERNAL_USER
from amqp_broker.management import json, live, page
from amqp_broker.management.access import ANYBODY, CHALLENGE, MANAGEMENT, login
from amqp_broker.management.listing import selected
from amqp_broker.management.node import Node
from amqp_broker.management.paths import BrokenPath, Paths, query_of
from amqp_broker.management.request import (
    Answer,
    Deferred,
    Refusal,
    Request,
    Resource,
    Streamed,
    bad_request,
    not_found,
    refusal_of,
)
from amqp_broker.management.resources import RESOURCES

logger = logging.getLogger("amqp_broker.management")

# RabbitMQ's management.http.max_body_size.
BODY_BYTES_MAX: Final = 20_000_000
# How long an answer waits for a commit, if the disk fails.
COMMIT_TIMEOUT_S: Final = 30.0
# How long a peer is waited for.
PATIENCE_S: Final = 60.0
JSON: Final = "application/json"
METHODS: Final = ("HEAD", "GET", "PUT", "POST", "PATCH", "DELETE", "OPTIONS")
CONTENT_SECURITY_POLICY: Final = "script-src 'self' 'unsafe-eval' 'unsafe-inline'; object-src 'self'"
SERVER: Final = "Cowboy"


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
    """Answers requests to one broker.

    `patience_s` is how long a peer may take for a request, its headers and its body each, and to take its answer; and
    how long a connection may say nothing.
    """

    def __init__(
        self,
        broker: Broker,
        node: Node,
        resources: Iterable[Resource] = RESOURCES,
        *,
        is_local: bool = False,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """With `is_local` (the control socket) nobody needs to log in."""
        self.broker = broker
        self.node = node
        self.is_local = is_local
        self.patience_s = patience_s
        self.operator = InternalUser("rmq-cli")
        # Whether it is all of management, with the web page, or a few resources for somebody else.
        self._is_whole = resources is RESOURCES
        self._paths = Paths(resources)
        # What ends a connection that we wait for.
        self._timers: dict[web.RequestHandler, asyncio.TimerHandle] = {}

    def application(self) -> web.Application:
        application = web.Application(middlewares=[self._refuse], client_max_size=BODY_BYTES_MAX)
        if self._is_whole:
            application.router.add_get("/_broker/events", self._events, allow_head=False)
            if not self.is_local:
                page.mount(application)
        application.router.add_route("*", "/{path:(?s:.*)}", self._handle)
        return application

    def _user_of(self, given: web.Request, needs: str) -> User:
        if self.is_local or needs == ANYBODY:
            return self.operator
        return login(self.broker, given.headers.get("Authorization"), needs, given.remote or "")

    async def _events(self, given: web.Request) -> web.StreamResponse:
        user = self._user_of(given, MANAGEMENT)
        return await live.send(given, self.broker, self.node, user, logged_in=not self.is_local)

    def protocols(self, server: web.Server) -> Callable[[], web.RequestHandler]:
        """What makes the protocols of a listener's connections, such that none is waited for without end."""

        def make() -> web.RequestHandler:
            protocol = server()
            self._wait_for(protocol)
            return protocol

        return make

    def _wait_for(self, protocol: web.RequestHandler) -> None:
        """End the connection if nothing whole has come from it after a time, or nothing could be sent."""
        self._act_on(protocol)
        self._timers[protocol] = asyncio.get_running_loop().call_later(self.patience_s, self._give_up, protocol)

    def _act_on(self, protocol: web.RequestHandler) -> None:
        timer = self._timers.pop(protocol, None)
        if timer is not None:
            timer.cancel()

    def _give_up(self, protocol: web.RequestHandler) -> None:
        del self._timers[protocol]
        if protocol.transport is not None:
            protocol.transport.abort()

    async def _handle(self, given: web.Request) -> web.StreamResponse:
        path, _, query = given.raw_path.partition("?")
        if not path.startswith("/"):
            # A request to a proxy has a whole URI.
            path = "/" + path.partition("://")[2].partition("/")[2]
        found = self._paths.find(path)
        if found is None:
            raise not_found()
        resource, parts = found
        method = "GET" if given.method == "HEAD" else given.method
        if method == "OPTIONS":
            return web.Response(headers={"Allow": allowed(resource), **headers_of(None)})
        if method not in resource.handlers:
            raise MethodNotAllowed(resource)
        user = self._user_of(given, resource.needs)
        if (given.content_length or 0) > BODY_BYTES_MAX:
            raise too_large()
        request = Request(
            self.broker,
            self.node,
            user,
            method,
            parts,
            query_of(query),
            {name.lower(): value for name, value in given.headers.items()},
            await self._body_of(given),
            query,
        )
        value = await self._call(resource, request)
        if isinstance(value, Streamed):
            response: web.StreamResponse = await value.send(given)
            return response
        if isinstance(value, Deferred):
            value = await _deferred(value)
        return respond(selected(request.query, value) if method == "GET" else value)

    async def _body_of(self, given: web.Request) -> bytes:
        if not given.can_read_body:
            return b""
        self._wait_for(given.protocol)
        try:
            body = await given.read()
        except (web.RequestPayloadError, HttpProcessingError):
            raise BrokenBody("The body is not what its headers say") from None
        self._act_on(given.protocol)
        return body

    async def _call(self, resource: Resource, request: Request) -> Any:
        broker, journal = self.broker, self.broker.journal
        broker.now = self.node.now()
        broker.counters.collect()
        broker.events.actor = request.user.name
        before = journal.told, journal.definitions
        try:
            value = resource.handlers[request.method](request)
        finally:
            broker.events.actor = INTERNAL_USER
            batch = journal.last_told
            self.node.flush()
        is_promise = before != (journal.told, journal.definitions)
        if request.method in ("PUT", "DELETE") and resource.path.startswith("/api/"):
            # What was so already may be so since a moment ago, and the journal counts no messages that go.
            is_promise = True
        if journal.is_durable and is_promise and journal.committed < batch:
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
        self._act_on(request.protocol)
        try:
            response: web.StreamResponse = await handler(request)
        except MethodNotAllowed as error:
            refusal = Refusal(405, "method_not_allowed", "Method Not Allowed")
            return refused(refusal, {"Allow": allowed(error.resource)})
        except BrokenPath:
            return refused(bad_request("The path is no URI"))
        except web.HTTPRequestEntityTooLarge:
            return self._hang_up(request, too_large())
        except BrokenBody as error:
            return self._hang_up(request, bad_request(str(error)))
        except ConnectionResetError:
            # Nobody is there to read this.
            return refused(Refusal(408, "request_timeout", "The connection ended before the request"))
        except web.HTTPNotFound:
            return refused(not_found())
        except web.HTTPException:
            raise
        except Exception as error:
            refusal_or_none = refusal_of(error)
            if refusal_or_none is None:
                logger.exception("%s %r: internal error", request.method, request.raw_path)
                refusal_or_none = Refusal(500, "internal_error", "Internal Server Error")
            if refusal_or_none.status == 413:
                return self._hang_up(request, refusal_or_none)
            return refused(refusal_or_none)
        finally:
            # The next request, and until then that the answer is taken.
            self._wait_for(request.protocol)
        return response

    def _hang_up(self, request: web.Request, refusal: Refusal) -> web.Response:
        """Refuse, and do not read what else would come."""
        response = refused(refusal)
        response.force_close()
        return response


async def _deferred(deferred: Deferred) -> Any:
    """What a handler answers later."""
    wait, is_done = deferred.wait, asyncio.Event()
    wait.begin(is_done.set)
    try:
        await asyncio.wait_for(is_done.wait(), deferred.timeout_s)
    except TimeoutError:
        pass  # the answer says what is missing
    finally:
        wait.end()
    return deferred.answer()


class BrokenBody(Exception):
    """What was sent is not encoded as it should be: nobody knows where the next request would begin."""


class MethodNotAllowed(Exception):
    def __init__(self, resource: Resource) -> None:
        super().__init__(resource.path)
        self.resource = resource


def too_large() -> Refusal:
    return Refusal(413, "payload_too_large", "Exceeded HTTP request body size limit")


def allowed(resource: Resource) -> str:
    """The methods of a resource, in RabbitMQ's order."""
    methods = {*resource.handlers, "HEAD", "OPTIONS"} if "GET" in resource.handlers else {*resource.handlers, "OPTIONS"}
    return ", ".join(method for method in METHODS if method in methods)


def headers_of(body: bytes | None) -> dict[str, str]:
    """What RabbitMQ says in the headers of each answer."""
    if body is None:
        return {"Vary": "origin", "Content-Security-Policy": CONTENT_SECURITY_POLICY, "Server": SERVER}
    return {
        "Content-Type": JSON,
        "Cache-Control": "no-cache",
        "Vary": "accept, accept-encoding, origin",
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "Server": SERVER,
    }


def respond(value: Any) -> web.Response:
    """The response to what a handler returned."""
    answer = value if isinstance(value, Answer) else Answer(200, value)
    if answer.value is None:
        return web.Response(status=answer.status, headers={**headers_of(None), **answer.headers})
    body = answer.value if isinstance(answer.value, bytes) else json.encode(answer.value)
    return web.Response(status=answer.status, headers={**headers_of(body), **answer.headers}, body=body)


def refused(refusal: Refusal, headers: Mapping[str, str] | None = None) -> web.Response:
    """The response that says why not."""
    kept = dict(headers or {})
    if refusal.status == 401 and refusal.error == "not_authorized":
        kept["WWW-Authenticate"] = CHALLENGE
    return respond(Answer(refusal.status, {"error": refusal.error, "reason": refusal.reason}, kept))
