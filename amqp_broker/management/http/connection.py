"""The connection of an HTTP client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from aiohttp import StreamReader, web
from aiohttp.http import RawRequestMessage

from amqp_broker.management.http.answers import bad_request
from amqp_broker.management.http.patience import Patience
from amqp_broker.management.http.responses import SERVER, refuse

if TYPE_CHECKING:
    from amqp_broker.management.http.unauthenticated import UnauthenticatedConnections

# Octets of a request's line and headers. aiohttp limits only each of them, and their number.
HEAD_BYTES_MAX: Final = 32 * 1024
# Octets of a body that wait to be read, before the peer is made to wait.
BUFFER_BYTES: Final = 16 * 1024
HEAD_TOO_LARGE: Final = (
    f"HTTP/1.1 431 Request Header Fields Too Large\r\nServer: {SERVER}\r\nContent-Length: 0\r\n"
    "Connection: close\r\n\r\n"
).encode()


class HttpConnection(web.RequestHandler):
    """Answers what is not HTTP in JSON; aiohttp's own answer names the library, and quotes the octets.

    Bodies stay packed until they are read.
    """

    __slots__ = ("_head_bytes", "_is_broken", "body", "patience", "unauthenticated")

    def __init__(
        self, server: web.Server, patience: Patience, unauthenticated: UnauthenticatedConnections, **more: Any
    ):
        super().__init__(server, auto_decompress=False, read_bufsize=BUFFER_BYTES, **more)
        self.patience = patience
        self.unauthenticated = unauthenticated
        # Of the last request.
        self.body: StreamReader | None = None
        self._head_bytes = 0
        # The client does not speak HTTP: nothing more is read.
        self._is_broken = False
        patience.begin(self)

    def begin_request(self, request: web.BaseRequest) -> None:
        """Note a request whose headers have arrived."""
        self.patience.end(self)
        self.unauthenticated.note_request(self)
        self.body = request.content

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.unauthenticated.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        is_answered = self._current_request is None
        super().connection_lost(exc)
        if is_answered and self.body is not None and not self.body.is_eof():
            # aiohttp waits for the rest of an unread body.
            self.body.feed_eof()
        self.body = None
        self.patience.end(self)
        self.unauthenticated.remove(self)

    def data_received(self, data: bytes) -> None:
        if self._is_broken:
            return
        super().data_received(data)
        if self._messages and not isinstance(last := self._messages[-1][0], RawRequestMessage):
            # The error keeps the frame of aiohttp that keeps the error and the octets, for each further read.
            self._is_broken = True
            last.exc.__traceback__ = None
        is_in_head = self._waiter is not None and not self._waiter.done()
        self._head_bytes = self._head_bytes + len(data) if is_in_head else 0
        if self._head_bytes > HEAD_BYTES_MAX and self.transport is not None:
            self.transport.write(HEAD_TOO_LARGE)
            self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        # It logs, and ends the connection if the answer was begun.
        super().handle_error(request, status, exc, message)
        response = refuse(bad_request("The request is not valid HTTP"))
        response.force_close()
        return response
