"""An HTTP API with canned answers that records requests, for tests of commands."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from amqp_broker.cli.rabbitmq import tool
from amqp_broker.cli.rabbitmq.tool_main import commands_of
from amqp_broker.cli.shared.http_api import Place
from amqp_broker.cli.shared.node_finder import NotRunning, Running

NODE = "rabbit@test"
NODE_STATE = {"name": NODE, "state": "running", "is_started": True, "problem": "", "version": "4.2.1", "pid": 1}


class Outcome(NamedTuple):
    output: str
    complaint: str
    exit_code: int


class Canned:
    """`answers` maps "METHOD path" to a status or to the value of a 200; all else is 404. `asked` is what came."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = {"GET /_broker/node": NODE_STATE, **answers}
        self.asked: list[tuple[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.place = Place()
        self.is_started = True
        self.version = "4.3.6"

    def run(self, line: str) -> Outcome:
        """Run a command line of RabbitMQ's tools against it."""
        program, *words = shlex.split(line)
        output, complaint = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(complaint):
            code = tool.run(program, words, commands_of(program), self._find)
        return Outcome(output.getvalue(), complaint.getvalue(), code)

    def _find(self, name: str) -> Running:
        return Running(NODE, self.place, self.version, self.is_started)

    def changes(self) -> list[tuple[str, Any]]:
        """Requests that were not only questions."""
        return [(request, body) for request, body in self.asked if not request.startswith("GET ")]


def run_without_node(line: str, others: tuple[str, ...] = ("rabbit@other",)) -> Outcome:
    """Run a command where only brokers of other names are."""

    def find(name: str) -> Running:
        is_choice = not name and len(others) > 1
        raise NotRunning(name or NODE, list(others), "/run/amqp-broker", is_choice=is_choice)

    program, *words = shlex.split(line)
    output, complaint = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(complaint):
        code = tool.run(program, words, commands_of(program), find)
    return Outcome(output.getvalue(), complaint.getvalue(), code)


@contextmanager
def canned(answers: dict[str, Any] | None = None) -> Iterator[Canned]:
    api = Canned(answers or {})

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            request = f"{self.command} {self.path}"
            octets = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            api.asked.append((request, json.loads(octets) if octets else None))
            api.headers.append(dict(self.headers))
            given = api.answers.get(request, 404)
            status, value = (given, {"reason": "Not Found"}) if isinstance(given, int) else (200, given)
            if isinstance(given, tuple):
                status, value = given
            body = b"" if status == 204 else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = answer

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    api.place = Place(host="127.0.0.1", port=server.server_address[1])
    yield api
    server.shutdown()
    server.server_close()
    thread.join()
