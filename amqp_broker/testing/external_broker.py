"""A broker that runs elsewhere, amqp-broker or RabbitMQ; its HTTP API creates the vhosts of tests."""

from __future__ import annotations

import base64
import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final, NoReturn
from urllib.parse import quote, unquote, urlsplit

MANAGEMENT_PORT: Final = 15672
TIMEOUT_S: Final = 30.0


class _External:
    """Skips a test that uses what only an embedded broker has, as markers and fixtures do."""

    _only_embedded: ClassVar[frozenset[str]]
    _variable: ClassVar[str]

    def __getattr__(self, name: str) -> NoReturn:
        if name not in self._only_embedded:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        import pytest

        pytest.skip(f"{self._variable}.{name} needs the embedded broker")


class ExternalBroker(_External):
    """The broker at an amqp:// URL, whose user must be an administrator. Raise ValueError for an invalid URL."""

    _variable = "amqp_broker"
    _only_embedded = frozenset(
        {
            *(
                "advice",
                "ask",
                "clock",
                "depth",
                "faults",
                "has_management",
                "is_running",
                "lent",
                "messages",
                "queues",
            ),
            *("reset", "restart", "restore", "run", "run_in_loop", "server", "settings", "snapshot", "start", "stop"),
        }
    )

    def __init__(self, url: str, management_url: str = "") -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("amqp", "amqps") or not parts.hostname:
            raise ValueError(f"{url!r} is not the URL of a broker, such as amqp://guest:guest@localhost:5672")
        self.url = url
        self._parts = parts
        self._user = unquote(parts.username or "guest")
        self._password = unquote(parts.password or "guest")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self._api = (management_url or f"http://{host}:{MANAGEMENT_PORT}").rstrip("/")
        found = urlsplit(self._api)
        # Without the login of the URL, which requests send as a header.
        self._api_address = f"{found.scheme}://{found.netloc.rpartition('@')[2]}{found.path}"

    def __repr__(self) -> str:
        """Return the address, without the password."""
        return f"<ExternalBroker {self._parts.scheme}://{self._parts.hostname}:{self.port}>"

    @property
    def port(self) -> int:
        """The AMQP port."""
        return self._parts.port or (5671 if self._parts.scheme == "amqps" else 5672)

    @property
    def management_url(self) -> str:
        """http://user:password@host:port of the HTTP API."""
        scheme, _, address = self._api_address.partition("://")
        return f"{scheme}://{quote(self._user, safe='')}:{quote(self._password, safe='')}@{address}"

    @property
    def version(self) -> str:
        """The version of RabbitMQ that the broker is or behaves like."""
        return str(self.request("GET", "/api/overview")["rabbitmq_version"])

    def amqp_url(self, vhost: str) -> str:
        """Return the AMQP URL of a vhost."""
        return self._parts._replace(path="/" + quote(vhost, safe="")).geturl()

    @contextmanager
    def vhost(self, name: str | None = None, *, warns: bool = True) -> Iterator[ExternalVHost]:
        """Create a vhost for the duration of the block. Raise ValueError for a vhost that exists.

        Open connections are not reported: the API of RabbitMQ lists connections only after a delay.
        """
        if name is not None and name in [one["name"] for one in self.request("GET", "/api/vhosts?columns=name")]:
            raise ValueError(f"vhost '{name}' exists already, and would be deleted at the end of the block")
        vhost = ExternalVHost(self, name or f"test-{os.urandom(6).hex()}")
        self.request("PUT", f"/api/vhosts/{vhost.path}")
        try:
            everything = {"configure": ".*", "write": ".*", "read": ".*"}
            self.request("PUT", f"/api/permissions/{vhost.path}/{quote(self._user, safe='')}", everything)
            yield vhost
        finally:
            self.request("DELETE", f"/api/vhosts/{vhost.path}")

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer of the HTTP API. Raise RuntimeError if it refuses or cannot be reached."""
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
            reason = error.read().decode(errors="replace")
            raise RuntimeError(f"{method} {self._api_address}{path}: {error.code} {reason}") from None
        except OSError as error:
            raise RuntimeError(
                f"{self._api_address} does not answer ({error}): tests need the HTTP API of the broker "
                "to create vhosts; set --amqp-broker-management-url to its address"
            ) from None
        return json.loads(text) if text else None


class ExternalVHost(_External):
    """A vhost of an external broker; `str` returns its name."""

    _variable = "amqp_vhost"
    _only_embedded = frozenset(
        {
            *("advice", "advised", "begin", "capture", "depth", "end", "event_log", "faults", "messages", "queues"),
            *("nemesis", "replay", "replay_async", "report", "reported", "reset", "unused_faults"),
            *("wait_depth", "wait_depth_async"),
        }
    )

    def __init__(self, broker: ExternalBroker, name: str) -> None:
        self.broker = broker
        self.name = name
        self.leaks: list[str] = []

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<ExternalVHost {self.name!r} of {self.broker!r}>"

    @property
    def path(self) -> str:
        """The name, quoted for a path of the HTTP API."""
        return quote(self.name, safe="")

    @property
    def url(self) -> str:
        """amqp://user:password@host:port/vhost"""
        return self.broker.amqp_url(self.name)

    def import_definitions(self, document: Any) -> None:
        """Import a definitions document."""
        self.broker.request("POST", f"/api/definitions/{self.path}", document)

    def failure_report(self, lines_max: int = 0) -> str:
        """Return nothing: the events of an external broker are unknown."""
        return ""
