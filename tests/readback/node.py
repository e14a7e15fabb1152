"""A broker as a process, its HTTP API, its tools and its clients."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pika
import pika.exceptions
from pika.adapters.blocking_connection import BlockingChannel

from tests.cli.program import Serving, program, run

TIMEOUT_S: Final = 30.0


class Node:
    """A running broker with its data in a folder."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        # Connections by name, which a write leaves for its reading.
        self.connections: dict[str, pika.BlockingConnection] = {}
        self._options = ("serve", "--port", "0", "--data-dir", str(folder / "data"))
        self.start()

    def start(self) -> None:
        (self.folder / "ports.json").unlink(missing_ok=True)
        self._broker = Serving((*program(), *self._options), self.folder, {"AMQP_BROKER_EPHEMERAL": "false"})
        self._stack.callback(self._broker.process.kill)

    def restart(self) -> None:
        """Stop the broker as an operator does, and start it with its data."""
        self._broker.end()
        self.start()

    @property
    def output(self) -> str:
        """The log since the last start."""
        return self._broker.output

    def ends(self) -> bool:
        """Return whether the process ends by itself."""
        try:
            self._broker.process.wait(1.0)
        except subprocess.TimeoutExpired:
            return False
        return True

    @property
    def name(self) -> str:
        return str(self.get("overview")["node"])

    def ask(self, method: str, path: str, body: Any = None, login: str = "guest:guest") -> tuple[int, Any]:
        """Send a request, below `/api/` unless the path begins with a slash; return status and value."""
        connection = http.client.HTTPConnection("127.0.0.1", self._broker.ports["management"], timeout=TIMEOUT_S)
        try:
            credentials = base64.b64encode(login.encode()).decode()
            headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}
            octets = None if body is None else json.dumps(body).encode()
            connection.request(method, path if path.startswith("/") else f"/api/{path}", octets, headers)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        return response.status, json.loads(text) if text else None

    def serves_http(self) -> bool:
        """Return whether the HTTP API takes connections."""
        with closing(socket.socket()) as trial:
            return trial.connect_ex(("127.0.0.1", self._broker.ports["management"])) == 0

    def get(self, path: str) -> Any:
        """Return an answer, or None if there is none."""
        status, value = self.ask("GET", path)
        assert status in (200, 404, 503), (path, value)
        return None if status == 404 else value

    def write(self, method: str, path: str, body: Any = None) -> None:
        status, value = self.ask(method, path, body)
        assert status < 300, f"{method} {path}: {status} {value}"

    def found(self, path: str, **there: Any) -> Any:
        """Return the first row of a list that has these values, or None."""
        return _first(self.get(path), there)

    def ctl(self, *words: str, tool: str = "ctl") -> str:
        """Run a command of RabbitMQ's tools; return its output."""
        done = run(tool, "--node", str(self._broker.port), *words)
        assert done.returncode == 0, f"{words}: {done.returncode} {done.stdout} {done.stderr}"
        return done.stdout

    def row(self, command: str, **there: Any) -> Any:
        """Return the first row that a command lists with these values, or None."""
        return _first(json.loads(self.ctl(*command.split(), "--silent", "--formatter", "json")), there)

    def connect(self, name: str = "client", user: str = "guest", vhost: str = "/") -> pika.BlockingConnection:
        """Return a connection that is open until the end of the tests."""
        parameters = pika.ConnectionParameters(
            "127.0.0.1", self._broker.port, vhost, pika.PlainCredentials(user, user), client_properties={"name": name}
        )
        self.connections[name] = connection = pika.BlockingConnection(parameters)
        return connection

    @contextmanager
    def channel(self) -> Iterator[BlockingChannel]:
        connection = self.connect("reader")
        yield connection.channel()
        if connection.is_open:
            connection.close()

    def bodies(self, queue: str) -> list[bytes]:
        """Return the bodies in a queue, which stay there."""
        with self.channel() as channel:
            found = []
            while (got := channel.basic_get(queue))[0] is not None:
                found.append(got[2])
        return found

    def is_open(self, name: str) -> bool:
        """Return whether a connection has not been closed by the broker."""
        connection = self.connections[name]
        try:
            connection.process_data_events(0.1)
        except pika.exceptions.AMQPError:
            return False
        return bool(connection.is_open)

    def can_log_in(self, user: str) -> bool:
        """Return whether a user whose password is the name can log in with AMQP."""
        try:
            self.connect("trial", user).close()
        except pika.exceptions.AMQPError:
            return False
        return True


def _first(rows: list[dict[str, Any]], there: dict[str, Any]) -> Any:
    return next((row for row in rows if there.items() <= row.items()), None)


@contextmanager
def running(folder: Path) -> Iterator[Node]:
    with ExitStack() as stack:
        yield Node(folder, stack)
