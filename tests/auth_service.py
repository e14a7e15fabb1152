"""A real HTTP service of logins and permissions, as an application has one for RabbitMQ's plugin."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

# Kinds of questions.
KINDS = ("user", "vhost", "resource", "topic")

Rule = Callable[[str, dict[str, str]], str]


def allow_all(kind: str, query: dict[str, str]) -> str:
    return "allow administrator" if kind == "user" else "allow"


class AuthService:
    """Answers what `rule` returns for a kind of question and its parameters, which `asked` lists."""

    def __init__(self, rule: Rule = allow_all, certificate: tuple[str, str] | None = None) -> None:
        self.rule = rule
        self.status = 200
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.lines: list[str] = []
        # Cleared to let questions wait.
        self.answers = threading.Event()
        self.answers.set()
        self._sockets: list[socket.socket] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                service._sockets.append(self.connection)

            def do_GET(self) -> None:
                path = urlsplit(self.path)
                self._answer(path.path, path.query)

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                assert self.headers["Content-Type"] == "application/x-www-form-urlencoded"
                self._answer(self.path, self.rfile.read(length).decode())

            def _answer(self, path: str, query: str) -> None:
                kind = path.rpartition("/")[2]
                parameters = dict(parse_qsl(query, keep_blank_values=True))
                service.asked.append((kind, parameters))
                service.lines.append(f"{self.command} {path}?{query}")
                service.answers.wait(30)
                body = service.rule(kind, parameters).encode()
                self.send_response(service.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._scheme = "http"
        if certificate is not None:
            self._scheme = "https"
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def settings(self, backends: str = "http", **others: Any) -> dict[str, Any]:
        """Return the settings of a broker that asks this service."""
        paths = {f"auth_http_{kind}_path": f"{self._scheme}://127.0.0.1:{self.port}/auth/{kind}" for kind in KINDS}
        return {"auth_backends": backends, **paths, **others}

    def kinds(self) -> list[str]:
        """Return the kinds of the questions so far."""
        return [kind for kind, _ in self.asked]

    def close_kept(self) -> None:
        """Close the connections that clients keep."""
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()

    def __enter__(self) -> AuthService:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()
