"""The web page: the files of the folder `static`, each at a path of its own, for everybody.

There is no path but those of files that are there when the broker starts, so that no request leads out of the folder.
The page itself asks the HTTP API, with the name and password that the user gives to it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from aiohttp import web

FOLDER: Final = Path(__file__).parent / "static"
CONTENT_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
HEADERS: Final = {
    # Only what this folder has runs and shows, whatever the names and payloads of messages say.
    "Content-Security-Policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    # It may be kept, but is asked for anew: an upgrade shows at once.
    "Cache-Control": "no-cache",
}


class File:
    """A file of the page; it is read when it is first asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content_type = CONTENT_TYPES[path.suffix]
        self._content: bytes | None = None
        self._etag = ""

    def content(self) -> tuple[bytes, str]:
        """The file, and the ETag of what is in it."""
        if self._content is None:
            self._content = self.path.read_bytes()
            self._etag = hashlib.sha256(self._content).hexdigest()[:20]
        return self._content, self._etag

    async def answer(self, request: web.Request) -> web.Response:
        content, etag = self.content()
        headers = {**HEADERS, "ETag": f'"{etag}"'}
        known = request.if_none_match or ()
        if any(tag.value in (etag, "*") for tag in known):
            return web.Response(status=304, headers=headers)
        return web.Response(body=content, headers={**headers, "Content-Type": self.content_type})


def files(folder: Path = FOLDER) -> dict[str, File]:
    """The files of the page by their paths in HTTP."""
    found = {
        "/" + path.relative_to(folder).as_posix(): File(path)
        for path in sorted(folder.rglob("*"))
        if path.suffix in CONTENT_TYPES and path.is_file()
    }
    # Browsers ask for the latter by themselves.
    return {"/": found["/index.html"], "/favicon.ico": found["/favicon.svg"], **found}


def mount(application: web.Application) -> None:
    """Serve the page."""
    for path, file in files().items():
        application.router.add_get(path, file.answer)
