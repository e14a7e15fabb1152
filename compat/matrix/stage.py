"""A broker for the scenarios, with TLS, the HTTP API, closed connections and restarts."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from compat.brokers import AmqpBroker, BrokerProcess, free_port
from compat.certificates import Issuer
from compat.matrix.results import AMQP_BROKER, RABBITMQ
from compat.matrix.use import in_use
from compat.oracles.rabbitmq import RabbitMQ
from compat.waiting import wait_until

# For this time RabbitMQ may list a closed connection, or omit an open one.
SETTLING_S = 1.0


class Scene(Protocol):
    """The requirements of a stage."""

    name: str

    def start(self) -> None: ...

    def environment(self, prefix: str) -> dict[str, str]: ...

    def restart(self) -> None: ...

    def close_connections(self) -> int: ...

    def use(self) -> None: ...

    def leave(self) -> None: ...

    def end(self) -> None: ...


class Stage:
    """One broker against which programs play one after the other."""

    def __init__(self, broker_name: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = broker_name
        self.tls_port, self.management_port = free_port(), free_port()
        self.issued = Issuer(folder / "tls").server()
        self.broker = self._broker(folder / "broker")
        self._use = ExitStack()

    def start(self) -> None:
        self.broker.start()

    def end(self) -> None:
        self.broker.kill()

    def environment(self, prefix: str) -> dict[str, str]:
        """Return the variables for the programs; object names begin with the prefix."""
        return {
            # For some clients, a trailing `/` means the vhost with the empty name.
            "AMQP_URL": f"{self.broker.url}%2F",
            "AMQPS_URL": f"amqps://guest:guest@localhost:{self.tls_port}/%2F",
            "CA_FILE": str(self.issued.authority.absolute()),
            "MANAGEMENT_URL": f"http://guest:guest@{self.broker.host}:{self.management_port}",
            "BROKER": "amqp-broker" if self.name == AMQP_BROKER else "rabbitmq",
            "PREFIX": prefix,
        }

    def restart(self) -> None:
        """Stop the broker as an operator does, and start it again on the same port with its data."""
        self.broker.stop()
        self.broker.start()

    def close_connections(self) -> int:
        """Close all open connections as an administrator, and return their number; wait until there is one.

        A connection that is opened meanwhile stays.
        """
        began = time.time()
        closed: set[str] = set()

        def look() -> bool:
            for connection in self._ask("GET", "connections"):
                name = connection.get("name")
                if name and name not in closed and connection.get("connected_at", 0) <= began * 1000:
                    self._ask("DELETE", f"connections/{quote(name, safe='')}")
                    closed.add(name)
            return bool(closed) and time.time() > began + SETTLING_S

        wait_until(look)
        return len(closed)

    def use(self) -> None:
        """Fill the broker with objects and busy clients, until `leave`."""
        self._use.enter_context(in_use(self.broker, self._ask))

    def leave(self) -> None:
        """Remove what `use` has made, if it was called."""
        self._use.close()

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        url = f"http://{self.broker.host}:{self.management_port}/api/{path}"
        request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), method=method)
        request.add_header("Authorization", "Basic " + b64encode(b"guest:guest").decode())
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            if error.code == 404 and method == "DELETE":
                return None  # the client was faster
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from error

    def _broker(self, folder: Path) -> BrokerProcess:
        certificate, key, authority = self.issued.certificate, self.issued.key, self.issued.authority
        if self.name == AMQP_BROKER:
            tls = ("--tls-port", str(self.tls_port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key))
            return AmqpBroker(folder, options=(*tls, "--management-port", str(self.management_port)))
        assert self.name == RABBITMQ
        oracle = RabbitMQ(
            folder,
            plugins=("rabbitmq_management", "rabbitmq_shovel_management", "rabbitmq_federation_management"),
            settings=(
                f"listeners.ssl.default = 127.0.0.1:{self.tls_port}",
                f"ssl_options.cacertfile = {authority}",
                f"ssl_options.certfile = {certificate}",
                f"ssl_options.keyfile = {key}",
            ),
        )
        oracle.management_port = self.management_port
        return oracle


class Stages:
    """Stages in a folder, one for each client that plays: a restart concerns a whole broker.

    A stage that a client has left is reused.
    """

    def __init__(self, folder: Path, make: Callable[[str, Path], Scene] = Stage) -> None:
        self._folder = folder
        self._make = make
        self._all: list[Scene] = []
        self._free: list[Scene] = []
        self._lock = threading.Lock()

    @contextmanager
    def taken(self, broker_name: str) -> Iterator[Scene]:
        """Provide a stage with this broker; after an error it is not reused."""
        stage = self._left(broker_name) or self._new(broker_name)
        yield stage
        with self._lock:
            self._free.append(stage)

    def end(self) -> None:
        for stage in self._all:
            stage.end()

    def _left(self, broker_name: str) -> Scene | None:
        with self._lock:
            stage = next((stage for stage in self._free if stage.name == broker_name), None)
            if stage:
                self._free.remove(stage)
            return stage

    def _new(self, broker_name: str) -> Scene:
        with self._lock:  # one at a time, as ports are given out
            stage = self._make(broker_name, self._folder / f"{broker_name}-{len(self._all)}")
            self._all.append(stage)
        stage.start()
        return stage
