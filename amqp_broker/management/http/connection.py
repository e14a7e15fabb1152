"""The connection of an HTTP client."""

from __future__ import annotations

from aiohttp import web

from amqp_broker.management.http.answers import bad_request
from amqp_broker.management.http.patience import Patience
from amqp_broker.management.http.responses import refuse


class HttpConnection(web.RequestHandler):
    """Answers what is not HTTP in JSON; aiohttp's own answer names the library, and quotes the octets."""

    __slots__ = ("patience",)
    patience: Patience

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self.patience.end(self)

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
