"""The web page and rabbitmqadmin: files of the folder `static`, each at its own path, served without a login.

Only the files that exist when the broker starts have a path, so no request can leave the folder. The page itself uses
the HTTP API with the name and password that the user enters.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from functools import partial
from pathlib import Path
from typing import Final

from aiohttp import web

from amqp_broker.management.page import admin_script

FOLDER: Final = Path(__file__).parent / "static"
CONTENT_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    # rabbitmqadmin.
    "": "application/octet-stream",
}
# An address in HTML that begins at the root.
_ADDRESS: Final = re.compile(rb'((?:href|src)=")(?=/)')
HEADERS: Final = {
    # Scripts, styles and images come only from this folder, whatever names and payloads of messages contain.
    "Content-Security-Policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    # Browsers may keep a file, but must revalidate it, so that an upgrade takes effect at once.
    "Cache-Control": "no-cache",
}


class File:
    """A file of the page, which is read at its first request. Addresses in HTML get a prefix."""

    def __init__(self, path: Path, prefix: str = "") -> None:
        self.path = path
        self.prefix = prefix
        self.content_type = CONTENT_TYPES[path.suffix]
        self._content: bytes | None = None
        self._packed = b""
        self._etag = ""

    def content(self, is_packed: bool = False) -> tuple[bytes, str]:
        """Return the contents, as they are or packed by gzip, and their ETag."""
        if self._content is None:
            self._content = self.read()
            if self.prefix and self.path.suffix == ".html":
                self._content = _ADDRESS.sub(rb"\1" + self.prefix.encode(), self._content)
            self._packed = gzip.compress(self._content, mtime=0)
            self._etag = hashlib.sha256(self._content).hexdigest()[:20]
        # Caches tell the two forms from each other by their ETags.
        return (self._packed, f"{self._etag}-gzip") if is_packed else (self._content, self._etag)

    def read(self) -> bytes:
        return self.path.read_bytes()

    async def answer(self, request: web.Request) -> web.Response:
        is_packed = "gzip" in request.headers.get("Accept-Encoding", "")
        content, etag = self.content(is_packed)
        headers = {**HEADERS, "ETag": f'"{etag}"', "Vary": "Accept-Encoding"}
        known = request.if_none_match or ()
        if any(tag.value in (etag, "*") for tag in known):
            return web.Response(status=304, headers=headers)
        if is_packed:
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=content, headers={**headers, "Content-Type": self.content_type})


class Script(File):
    """rabbitmqadmin as one file, which is put together at the first request."""

    def read(self) -> bytes:
        return admin_script.script()


def files(folder: Path = FOLDER, prefix: str = "") -> dict[str, File]:
    """Return the files of the page by their paths in HTTP behind the prefix."""
    found = {
        "/" + path.relative_to(folder).as_posix(): File(path, prefix)
        for path in sorted(folder.rglob("*"))
        if path.suffix in CONTENT_TYPES and path.is_file()
    }
    # Browsers request /favicon.ico without being asked to.
    found |= {"/": found["/index.html"], "/favicon.ico": found["/favicon.svg"]}
    return {**found, "/cli/rabbitmqadmin": Script(Path("rabbitmqadmin"))}


def mount(application: web.Application, prefix: str = "") -> None:
    """Add a route for each file of the page. `/cli/` and, with a prefix, `/` lead to others, as in RabbitMQ."""
    found = files(prefix=prefix)
    for path, file in found.items():
        application.router.add_get(prefix + path, file.answer)
    for path in ("/cli", "/cli/"):
        application.router.add_get(prefix + path, partial(redirect, f"{prefix}/cli/index.html"))
    if prefix:
        application.router.add_get(prefix, found["/"].answer)
        application.router.add_get("/", partial(redirect, f"{prefix}/"))


async def redirect(target: str, request: web.Request) -> web.Response:
    return web.Response(status=301, headers={"Location": target})
