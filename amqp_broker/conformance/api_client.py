"""Requests to the HTTP API of a broker."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

TIMEOUT_S = 30.0
PORTS = {"http": 15672, "https": 15671}


class Unanswered(Exception):
    """The HTTP API cannot be asked; the text is a sentence."""


class Answer(NamedTuple):
    """An answer; its value is decoded JSON, or text."""

    status: int
    value: Any
    headers: dict[str, str]


@dataclass(frozen=True)
class HttpApi:
    """The HTTP API at a URL such as `http://localhost:15672`, as a user."""

    url: str
    user: str
    password: str
    context: ssl.SSLContext | None = None

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """Send a request for a path below `/api/`, with a body that is JSON or octets. Raise Unanswered."""
        octets = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        credentials = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        headers = {"Content-Type": "application/json", "Authorization": f"Basic {credentials}"}
        connection = self._connection()
        try:
            connection.request(method, f"{urlsplit(self.url).path.rstrip('/')}/api/{path}", octets, headers)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unanswered(f"the HTTP API at {self.url} does not answer: {error or type(error).__name__}") from None
        finally:
            connection.close()
        return Answer(response.status, _value(text), {name.lower(): value for name, value in response.headers.items()})

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        host, port = parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0)
        if parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=self.context)
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)


def _value(text: bytes) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text.decode("utf-8", "replace")


def filled(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value with the texts for names in braces."""
    match value:
        case str():
            for name, text in names.items():
                value = value.replace(f"{{{name}}}", text)
            return value
        case dict():
            return {key: filled(item, names) for key, item in value.items()}
        case list():
            return [filled(item, names) for item in value]
    return value
