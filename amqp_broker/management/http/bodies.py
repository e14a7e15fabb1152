"""The body of a request, read with a limit. When its client leaves, the octets leave memory at once.

aiohttp keeps the exception that ends a body, and the exception's traceback keeps every frame that was reading: a cycle
with all octets so far, which lives until the next collection of garbage.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, Final

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import RequestPayloadError

from amqp_broker.management.http.answers import Refusal

if TYPE_CHECKING:
    from aiohttp import web

# RabbitMQ's management.http.max_body_size.
BODY_BYTES_MAX: Final = 20_000_000
# For clients that have not logged in: a login form.
FORM_BYTES_MAX: Final = 8 * 1024
# Octets that are unpacked at once; others are served in between.
PIECE_BYTES: Final = 256 * 1024
PACKED: Final = ("gzip", "x-gzip", "deflate")
# zlib recognises the headers of both formats.
ANY_FORMAT: Final = 32 + zlib.MAX_WBITS


class BrokenBody(Exception):
    """The body is not encoded as its headers say, so that the next request cannot be found."""


class ClientLeft(Exception):
    """The connection ended before the body."""


def too_large() -> Refusal:
    """Return the refusal of a body beyond the limit."""
    return Refusal(413, "payload_too_large", "Exceeded HTTP request body size limit")


async def read_body(request: web.BaseRequest, bytes_max: int) -> bytes:
    """Return the body, unpacked. Raise Refusal (413) for a longer one, BrokenBody, or ClientLeft."""
    if not request.can_read_body:
        return b""
    if (request.content_length or 0) > bytes_max:
        raise too_large()
    body = bytearray()
    try:
        await _read(request, body, bytes_max)
        return bytes(body)
    except (RequestPayloadError, HttpProcessingError, zlib.error) as error:
        error.__traceback__ = None
        raise BrokenBody("The body does not match its headers") from None
    except ConnectionError as error:
        error.__traceback__ = None
        raise ClientLeft from None
    finally:
        body.clear()


async def _read(request: web.BaseRequest, body: bytearray, bytes_max: int) -> None:
    """Fill `body`."""
    is_packed = request.headers.get("Content-Encoding", "").strip().lower() in PACKED
    unpacker = zlib.decompressobj(ANY_FORMAT) if is_packed else None
    content = request.content
    if bytes_max > PIECE_BYTES:
        content.set_read_chunk_size(PIECE_BYTES)
    while octets := await content.readany():
        while unpacker is not None and octets:
            body += unpacker.decompress(octets, PIECE_BYTES)
            octets = unpacker.unconsumed_tail
            if len(body) > bytes_max:
                raise too_large()
            await asyncio.sleep(0)
        body += octets
        if len(body) > bytes_max:
            raise too_large()
    if unpacker is not None and not unpacker.eof:
        raise zlib.error("the body ends too early")
