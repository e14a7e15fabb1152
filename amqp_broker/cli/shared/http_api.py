"""A client of the broker's HTTP API, over its control socket or over TCP with a user and a password.

It implements HTTP itself, with one connection per request, because importing http.client takes longer than a whole
health check: 1.0, and 1.1 for answers whose end must be seen.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

if TYPE_CHECKING:
    import ssl

CHUNK_BYTES: int = 65536


class Unreachable(Exception):
    """There is no answer, or it is not HTTP."""


class TimedOut(Unreachable):
    """The answer did not arrive in time."""


class Place(NamedTuple):
    """Address of an API: the path of a socket, or host and port, with credentials and TLS."""

    path: str = ""
    host: str = ""
    port: int = 0
    # The value of the Authorization header.
    authorization: str = ""
    tls: ssl.SSLContext | None = None


class Answered(NamedTuple):
    """An answer; `value` is the decoded JSON of the body, or its text if it is not JSON."""

    status: int
    value: Any
    headers: Mapping[str, str]

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def reason(self) -> str:
        """The reason of an error."""
        if isinstance(self.value, dict):
            return str(self.value.get("reason") or self.value.get("error") or self.value)
        # Proxies and other web servers answer with a page or with nothing.
        if self.value is None or (isinstance(self.value, str) and self.value.lstrip()[:1] in ("", "<")):
            return f"the server there is not an amqp-broker: HTTP status {self.status}"
        return str(self.value)


class Refused(Exception):
    """The answer is an error."""

    def __init__(self, answer: Answered) -> None:
        super().__init__(answer.reason)
        self.answer = answer


def without_password(url: str) -> str:
    """Return a URL, which may be invalid, for an error message."""
    login, at, rest = url.rpartition("@")
    name, colon, password = login.rpartition(":")
    return f"{name}:***@{rest}" if at and colon and not password.startswith("//") else url


class Api:
    """A client of one broker. Requests raise Unreachable without an answer within `timeout_s`."""

    def __init__(self, place: Place, timeout_s: float | None = 60.0) -> None:
        self.place = place
        self.timeout_s = timeout_s

    def get(self, target: str) -> Answered:
        return self.ask("GET", target)

    def ask(self, method: str, target: str, body: Any = None, **headers: str) -> Answered:
        """Return the answer to a request. A body that is not bytes is sent as JSON, `_` in a header name as `-`."""
        octets = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        try:
            with self._connect() as stream:
                stream.sendall(self.head(method, target, octets, headers) + octets)
                received = b"".join(iter(lambda: stream.recv(CHUNK_BYTES), b""))
        except TimeoutError as error:
            raise TimedOut(str(error)) from None
        except OSError as error:
            raise Unreachable(error.strerror or str(error)) from None
        return parse(received)

    def lines(self, target: str) -> Iterator[bytes]:
        """Yield the complete lines of an endless answer as they arrive. Raises Refused for an error."""
        try:
            with self._connect() as stream:
                stream.sendall(self.head("GET", target, b"", {}))
                received = b""
                while b"\r\n\r\n" not in received:
                    received += (chunk := stream.recv(CHUNK_BYTES))
                    if not chunk:
                        break
                head, _, rest = received.partition(b"\r\n\r\n")
                if b" 200 " not in head.partition(b"\r\n")[0]:
                    raise Refused(parse(received + b"".join(iter(lambda: stream.recv(CHUNK_BYTES), b""))))
                # Long pauses between lines are normal.
                stream.settimeout(None)
                yield from _whole_lines(stream, rest)
        except TimeoutError as error:
            raise TimedOut(str(error)) from None
        except OSError as error:
            raise Unreachable(error.strerror or str(error)) from None

    def pieces(self, target: str) -> Iterator[bytes]:
        """Yield the body of a long answer as it arrives.

        Raises Refused for an error, and Unreachable if the end is missing.
        """
        try:
            with self._connect() as stream, stream.makefile("rb") as answer:
                stream.sendall(self.head("GET", target, b"", {"Connection": "close"}, "1.1"))
                head = b""
                while not head.endswith(b"\r\n\r\n") and (line := answer.readline()):
                    head += line
                if b" 200 " not in head.partition(b"\r\n")[0]:
                    raise Refused(parse(head + answer.read()))
                yield from _chunks(answer)
        except TimeoutError as error:
            raise TimedOut(str(error)) from None
        except OSError as error:
            raise Unreachable(error.strerror or str(error)) from None

    def head(self, method: str, target: str, octets: bytes, headers: Mapping[str, str], version: str = "1.0") -> bytes:
        """Return the head of a request with these octets as its body."""
        host = f"[{self.place.host}]" if ":" in self.place.host else self.place.host or "localhost"
        head = [f"{method} {target} HTTP/{version}", f"Host: {host}"]
        head += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        if self.place.authorization:
            head.append(f"Authorization: {self.place.authorization}")
        if octets or method in ("PUT", "POST"):
            head += ["Content-Type: application/json", f"Content-Length: {len(octets)}"]
        return "\r\n".join([*head, "", ""]).encode()

    def _connect(self) -> socket.socket:
        place = self.place
        if place.path and sys.platform != "win32":
            stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            stream.settimeout(self.timeout_s)
            try:
                stream.connect(place.path)
            except OSError:
                stream.close()
                raise
            return stream
        stream = socket.create_connection((place.host, place.port), self.timeout_s)
        return stream if place.tls is None else place.tls.wrap_socket(stream, server_hostname=place.host)


def _chunks(answer: BinaryIO) -> Iterator[bytes]:
    """Yield the chunks of a body (RFC 9112, section 7.1). Raises Unreachable if the last one is missing."""
    while size := answer.readline().rstrip():
        try:
            length = int(size.partition(b";")[0], 16)
        except ValueError:
            raise Unreachable("the server there is not an amqp-broker: its answer has no chunks") from None
        if not length:
            return
        chunk = answer.read(length)
        yield chunk
        if len(chunk) < length or answer.readline() != b"\r\n":
            break
    raise Unreachable("the connection was closed in the middle of an answer")


def _whole_lines(stream: socket.socket, received: bytes) -> Iterator[bytes]:
    pieces = [received]
    while True:
        if b"\n" in pieces[-1]:
            *whole, rest = b"".join(pieces).split(b"\n")
            yield from (line + b"\n" for line in whole)
            pieces = [rest]
        pieces.append(stream.recv(CHUNK_BYTES))
        if not pieces[-1]:
            return


def parse(received: bytes) -> Answered:
    """Return the answer in all bytes of a connection. Raises Unreachable if it is incomplete."""
    head, blank, body = received.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ", 2)
    if not blank or len(words) < 2 or not words[0].startswith("HTTP/") or not words[1].isdigit():
        raise Unreachable("the server there does not speak HTTP")
    pairs = (line.partition(":") for line in lines[1:])
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    length = headers.get("content-length")
    if length is not None and length.isdigit() and len(body) < int(length):
        raise Unreachable("the connection was closed in the middle of an answer")
    try:
        value = _value_of(body) if body else None
    except ValueError:
        value = body.decode(errors="replace")
    return Answered(int(words[1]), value, headers)


def _value_of(body: bytes) -> Any:
    """Return the value of a JSON document. Raise ValueError."""
    try:
        return json.loads(body)
    except RecursionError:
        # Few answers are that deep, and health checks start without the module.
        from amqp_broker.management.documents import nested_json

        return nested_json.read(body.decode())
