"""The application of aiohttp: it turns requests into values for the handlers, and values into answers.

A change by a request is journaled like a change by an AMQP client, and answered when it is safe.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final, TypeVar

from aiohttp import web
from aiohttp.typedefs import Handler

from amqp_broker.broker.admin.access import InternalUser, User
from amqp_broker.broker.backends.questions import Answers, Unanswered
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.observe.events import INTERNAL_USER
from amqp_broker.broker.scheduling.portions import Steps, Work
from amqp_broker.management.api_sections import all_endpoints
from amqp_broker.management.http import cross_site, negotiation
from amqp_broker.management.http.answers import Answer, Deferred, Refusal, Streamed, bad_request, not_found, refusal_of
from amqp_broker.management.http.auth import PUBLIC, answered, login
from amqp_broker.management.http.bodies import BODY_BYTES_MAX, FORM_BYTES_MAX, BrokenBody, ClientLeft, read_body
from amqp_broker.management.http.columns import selected
from amqp_broker.management.http.connection import HttpConnection
from amqp_broker.management.http.endpoint import Endpoint
from amqp_broker.management.http.long_requests import LongRequests
from amqp_broker.management.http.paths import BrokenPath, Paths, query_of
from amqp_broker.management.http.patience import Patience
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.responses import allowed, encoded, headers_of, refuse, respond
from amqp_broker.management.http.unauthenticated import UnauthenticatedConnections
from amqp_broker.management.node.node import Node
from amqp_broker.management.page import files

logger = logging.getLogger("amqp_broker.management")

T = TypeVar("T")

# Key of a request's allowed methods.
ALLOW: Final = web.RequestKey("allow", str)
# Seconds until an answer that waits for a commit is refused.
COMMIT_TIMEOUT_S: Final = 30.0
# Seconds that a peer may take for a request, for its body, for the answer, and between requests.
PATIENCE_S: Final = 60.0


class CommitWait:
    """An answer among the connections that wait for a commit (`Broker.awaiting_commit`)."""

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.is_safe = asyncio.get_running_loop().create_future()

    def on_committed(self, committed: int) -> bool:
        """Return whether to continue waiting."""
        if committed >= self.batch and not self.is_safe.done():
            self.is_safe.set_result(None)
        return not self.is_safe.done()


class Management:
    """Answers requests to one broker: the whole API with the web page, or some endpoints.

    `is_local` is for the control socket, which needs no login. `clock` returns seconds, by default those of the loop.
    """

    def __init__(
        self,
        broker: Broker,
        node: Node,
        endpoints: Iterable[Endpoint] | None = None,
        *,
        is_local: bool = False,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.broker = broker
        self.node = node
        self.is_local = is_local
        self.patience = Patience(patience_s)
        self.unauthenticated = UnauthenticatedConnections()
        self.operator = InternalUser("rmq-cli")
        self._clock = clock
        self._long_requests = LongRequests()
        host_name = node.host_name().lower()
        more = broker.settings.management_hosts.lower().replace(",", " ").split()
        self._hosts = {host_name, host_name.partition(".")[0], *more}
        # The control socket is no browser's, and the listener for metrics changes nothing.
        self._is_for_browsers = endpoints is None and not is_local
        self._prefix = broker.settings.management_path_prefix if self._is_for_browsers else ""
        self._paths = Paths(all_endpoints() if endpoints is None else endpoints)

    def application(self) -> web.Application:
        """Return the application, to be run by aiohttp."""
        application = web.Application(middlewares=[self._refuse])
        if self._is_for_browsers:
            files.mount(application, self._prefix)
        application.router.add_route("*", "/{path:(?s:.*)}", self._handle)
        return application

    def connections(self, server: web.Server, log: logging.Logger) -> Callable[[], HttpConnection]:
        """Return a factory of the protocols of connections."""
        loop, silent = asyncio.get_running_loop(), logging.Logger("amqp_broker.http.access", logging.CRITICAL)

        def make() -> HttpConnection:
            return HttpConnection(server, self.patience, self.unauthenticated, loop=loop, logger=log, access_log=silent)

        return make

    async def _handle(self, given: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in given.headers.items()}
        if self._is_for_browsers:
            self._check_browser(given, headers)
        path, _, query = given.raw_path.partition("?")
        if not path.startswith("/"):
            # A request to a proxy has a complete URI.
            path = "/" + path.partition("://")[2].partition("/")[2]
        if not f"{path}/".startswith(f"{self._prefix}/"):
            raise not_found()
        found = self._paths.find(path.removeprefix(self._prefix))
        if found is None:
            raise not_found()
        by_method, names = found
        given[ALLOW] = allowed(by_method)
        method = "GET" if given.method == "HEAD" else given.method
        if method == "OPTIONS":
            return web.Response(headers={"Allow": given[ALLOW], **headers_of(None)})
        endpoint = by_method.get(method)
        if endpoint is None:
            raise MethodNotAllowed
        user = await self._user_of(given, endpoint)
        negotiation.check_accept(endpoint, headers)
        negotiation.check_body_type(endpoint, headers)
        body = b"" if method == "GET" else await self._body_of(given, endpoint)
        request = Request(self.broker, self.node, user, method, names, query_of(query), headers, body, query)
        value = await self._call(endpoint, request)
        if isinstance(value, Streamed):
            if given.method == "HEAD":
                return respond(None)
            return await _sent(value, given)
        if isinstance(value, Deferred):
            value = await _deferred(value)
        return respond(await self._in_portions(_written(request, value)))

    def _check_browser(self, given: web.Request, headers: dict[str, str]) -> None:
        """Raise Refusal for a request that a browser has sent for another site."""
        cross_site.check_site(headers)
        address = given.transport.get_extra_info("sockname") if given.transport is not None else None
        cross_site.check_host(headers, str(address[0]) if address else "", self._hosts)
        if given.can_read_body and given.method not in ("GET", "HEAD", "OPTIONS"):
            cross_site.check_type(headers)

    async def _user_of(self, given: web.Request, endpoint: Endpoint) -> User:
        if self.is_local:
            self.unauthenticated.remove(given.protocol)
        if self.is_local or endpoint.tag == PUBLIC:
            return self.operator
        answers, authorization = Answers(is_bounded=False), given.headers.get("Authorization")
        while True:
            try:
                user = login(self.broker, authorization, endpoint.tag, given.remote or "", answers)
                break
            except Unanswered as question:
                await answered(question)
        self.unauthenticated.remove(given.protocol)
        return user

    async def _body_of(self, given: web.Request, endpoint: Endpoint) -> bytes:
        is_anonymous = endpoint.tag == PUBLIC and not self.is_local
        self.patience.begin(given.protocol)
        body = await read_body(given, FORM_BYTES_MAX if is_anonymous else BODY_BYTES_MAX)
        self.patience.end(given.protocol)
        return body

    async def _call(self, endpoint: Endpoint, request: Request) -> Any:
        """Return the value of a handler when its changes are safe. Between portions of long work others are served."""
        broker, journal = self.broker, self.broker.journal
        while self._is_down(request):
            await self._long_requests.wait()
        before = journal.journal_bytes, journal.definitions
        batch, work = 0, self._work(_handled(endpoint, request))
        try:
            while True:
                broker.now = self.node.now()
                broker.events.actor = request.user.name
                question: Unanswered | None = None
                try:
                    is_done = work.run_portion()
                except Unanswered as unanswered:
                    is_done, question = False, unanswered
                finally:
                    broker.events.actor = INTERNAL_USER
                    batch = journal.last_used_batch
                    if request.method != "GET":
                        journal.require(batch)
                    self.node.flush()
                if is_done:
                    break
                if question is None:
                    await self._long_requests.wait()
                else:
                    # Handlers check permissions before they change anything.
                    await answered(question)
                    work = self._work(_handled(endpoint, request))
        finally:
            work.close()
        is_promise = before != (journal.journal_bytes, journal.definitions)
        if request.method in ("PUT", "DELETE") and endpoint.path.startswith("/api/"):
            # The journal does not count removals, and a request without a change may rest on one that is not safe yet.
            is_promise = True
        if is_promise:
            await self._await_commit(batch)
        return work.result

    def _is_down(self, request: Request) -> bool:
        """Return whether another request deletes or restores the vhost of this one."""
        vhost = self.broker.vhosts.get(request.path.get("vhost") or request.query.get("vhost", ""))
        return vhost is not None and vhost.is_down

    async def _await_commit(self, batch: int) -> None:
        """Wait until a batch is safe. Raise Refusal (503) if that takes too long."""
        journal, waiting = self.broker.journal, self.broker.awaiting_commit
        if not journal.is_durable or journal.committed >= batch:
            return
        wait = CommitWait(batch)
        waiting[wait] = None
        try:
            await asyncio.wait_for(wait.is_safe, COMMIT_TIMEOUT_S)
        except TimeoutError:
            raise Refusal(503, "service_unavailable", "The store does not accept changes") from None
        finally:
            waiting.pop(wait, None)

    def _work(self, steps: Steps[T]) -> Work[T]:
        return Work(steps, self._clock or asyncio.get_running_loop().time)

    async def _in_portions(self, steps: Steps[Answer]) -> Answer:
        """Return the result of steps that change nothing."""
        work = self._work(steps)
        while not work.run_portion():
            await self._long_requests.wait()
        return work.result

    @web.middleware
    async def _refuse(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer errors in JSON, never with a page of HTML or a traceback. From 4.3 on, name the allowed methods."""
        assert isinstance(request.protocol, HttpConnection)
        request.protocol.begin_request(request)
        response = await self._answer(request, handler)
        if ALLOW in request and not response.prepared and self.broker.profile.release >= (4, 3):
            response.headers.setdefault("Allow", request[ALLOW])
        return response

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return refuse(not_found())
        except web.HTTPException:
            raise
        except Exception as error:
            # The error's traceback keeps this frame, whose variables must not keep the error.
            return self._refusal(request, error)
        finally:
            # The peer has to take the answer and to send the next request, unless it has left.
            if request.transport is not None:
                self.patience.begin(request.protocol)

    def _refusal(self, request: web.Request, error: Exception) -> web.StreamResponse:
        """Return the answer to a request that failed."""
        if isinstance(error, MethodNotAllowed):
            return respond(Answer(405, headers={"Allow": request[ALLOW]}))
        if isinstance(error, BrokenPath):
            return refuse(bad_request("The path is not a valid URI"))
        if isinstance(error, BrokenBody):
            return _hang_up(bad_request(str(error)))
        if isinstance(error, (ClientLeft, ConnectionResetError)):
            # aiohttp requires an answer all the same.
            return refuse(Refusal(408, "request_timeout", "The connection ended before the request"))
        known = refusal_of(error)
        if known is None:
            logger.error("%s %r: internal error", request.method, request.raw_path, exc_info=error)
            return refuse(Refusal(500, "internal_error", "Internal Server Error"))
        return _hang_up(known) if known.status == 413 else refuse(known)


def _handled(endpoint: Endpoint, request: Request) -> Steps[Any]:
    """Return the value of a handler, which returns either that or the steps to it."""
    if endpoint.tag != PUBLIC:
        # A client without a login causes no walk over all channels. Metrics collect for themselves.
        yield from request.broker.collecting_counts()
    if not endpoint.is_import:
        yield from request.reading()
    value = endpoint.handler(request)
    return (yield from value) if isinstance(value, Generator) else value


def _written(request: Request, value: Any) -> Steps[Answer]:
    """Return the answer with the chosen columns of a value, in JSON."""
    if request.method == "GET":
        value = yield from selected(request.query, value)
    return (yield from encoded(value))


def _hang_up(refusal: Refusal) -> web.Response:
    """Return a response after which the connection is closed, since the rest of the body is not read."""
    response = refuse(refusal)
    response.force_close()
    return response


async def _sent(value: Streamed, given: web.Request) -> web.StreamResponse:
    """Send a stream, which checks permissions before its first octet."""
    while True:
        try:
            return await value.send(given)
        except Unanswered as question:
            await answered(question)


async def _deferred(deferred: Deferred) -> Any:
    """Return a deferred answer when it is due."""
    wait, is_done = deferred.wait, asyncio.Event()
    wait.begin(is_done.set)
    try:
        await asyncio.wait_for(is_done.wait(), deferred.timeout_s)
    except TimeoutError:
        pass  # the answer reports a condition that is not met
    finally:
        wait.end()
    return deferred.answer()


class MethodNotAllowed(Exception):
    """The path has other methods."""
