"""A broker that somebody else runs, ours or RabbitMQ: the fixtures make vhosts there over its HTTP API."""

from __future__ import annotations

import base64
import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

MANAGEMENT_PORT: Final = 15672
TIMEOUT_S: Final = 30.0


class OutsideBroker:
    """The broker at an amqp:// URL, whose user must be an administrator. Raises ValueError for another URL."""

    def __init__(self, url: str, management_url: str = "") -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("amqp", "amqps") or not parts.hostname:
            raise ValueError(f"{url!r} is no URL of a broker; amqp://guest:guest@localhost:5672 is one")
        self.url = url
        self._parts = parts
        self._user = unquote(parts.username or "guest")
        self._password = unquote(parts.password or "guest")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self._api = (management_url or f"http://{host}:{MANAGEMENT_PORT}").rstrip("/")
        found = urlsplit(self._api)
        # Its own login, if there is one, need not stand in the requests.
        self._api_address = f"{found.scheme}://{found.netloc.rpartition('@')[2]}{found.path}"

    @property
    def port(self) -> int:
        """The port of AMQP."""
        return self._parts.port or (5671 if self._parts.scheme == "amqps" else 5672)

    @property
    def management_url(self) -> str:
        """http://user:password@host:port of the HTTP API."""
        scheme, _, address = self._api_address.partition("://")
        return f"{scheme}://{quote(self._user, safe='')}:{quote(self._password, safe='')}@{address}"

    @property
    def version(self) -> str:
        """Which RabbitMQ it is, or is like."""
        return str(self.request("GET", "/api/overview")["rabbitmq_version"])

    def amqp_url(self, vhost: str) -> str:
        """The URL with this vhost."""
        return self._parts._replace(path="/" + quote(vhost, safe="")).geturl()

    @contextmanager
    def vhost(self, name: str | None = None, *, warns: bool = True) -> Iterator[OutsideVHost]:
        """A fresh vhost that is deleted at the end of the block.

        What is open then is not told: RabbitMQ's API knows of connections only after a while.
        """
        vhost = OutsideVHost(self, name or f"test-{os.urandom(6).hex()}")
        self.request("PUT", f"/api/vhosts/{vhost.path}")
        try:
            everything = {"configure": ".*", "write": ".*", "read": ".*"}
            self.request("PUT", f"/api/permissions/{vhost.path}/{quote(self._user, safe='')}", everything)
            yield vhost
        finally:
            self.request("DELETE", f"/api/vhosts/{vhost.path}")

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """What the HTTP API answers. Raises RuntimeError, with what it says, if it refuses or is not there."""
        request = urllib.request.Request(f"{self._api_address}{path}", method=method)
        login = base64.b64encode(f"{self._user}:{self._password}".encode()).decode()
        request.add_header("Authorization", f"Basic {login}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            raise RuntimeError(f"{method} {self._api_address}{path}: {error.code} {said}") from None
        except OSError as error:
            raise RuntimeError(
                f"{self._api_address} does not answer ({error}): tests need the HTTP API of the broker to make vhosts; "
                "--amqp-broker-management-url says where it is"
            ) from None
        return json.loads(text) if text else None


class OutsideVHost:
    """A vhost there, of which no more is known than what it is called. As text it is its name."""

    def __init__(self, broker: OutsideBroker, name: str) -> None:
        self.broker = broker
        self.name = name
        self.leaks: list[str] = []

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> str:
        """Its name in a path of the HTTP API."""
        return quote(self.name, safe="")

    @property
    def url(self) -> str:
        """amqp://user:password@host:port/vhost"""
        return self.broker.amqp_url(self.name)

    def import_definitions(self, document: Any) -> None:
        """Declare what a document says."""
        self.broker.request("POST", f"/api/definitions/{self.path}", document)

    def what_happened(self) -> str:
        """Nobody tells what happens there."""
        return ""
