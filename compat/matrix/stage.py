"""A broker as the scenarios need it: TLS, the HTTP API, an administrator who closes connections, restarts."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote

from compat.brokers import BrokerProcess, OurBroker, RabbitMQ, free_port
from compat.certificates import Issuer
from compat.matrix.results import OURS, RABBITMQ
from compat.waiting import wait_until

# For so long RabbitMQ may tell of a connection that is closed, and not of one that is open.
SETTLING_S = 1.0


class Stage:
    """One broker that all programs play against, one after the other."""

    def __init__(self, broker_name: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = broker_name
        self.tls_port, self.management_port = free_port(), free_port()
        self.issued = Issuer(folder / "tls").server()
        self.broker = self._broker(folder / "broker")

    def environment(self, prefix: str) -> dict[str, str]:
        """What the programs are told of the broker; names of theirs begin with the prefix."""
        return {
            # For some clients `/` at the end is the vhost of the empty name.
            "AMQP_URL": f"{self.broker.url}%2F",
            "AMQPS_URL": f"amqps://guest:guest@localhost:{self.tls_port}/%2F",
            "CA_FILE": str(self.issued.authority.absolute()),
            "MANAGEMENT_URL": f"http://guest:guest@{self.broker.host}:{self.management_port}",
            "BROKER": "ours" if self.name == OURS else "rabbitmq",
            "PREFIX": prefix,
        }

    def restart(self) -> None:
        """Stop the broker as an operator does, and start it again on the same port with its data."""
        self.broker.stop()
        self.broker.start()

    def close_connections(self) -> int:
        """Close, as an administrator, each connection that is open now, and say how many; waits until there is one.

        One that is opened again meanwhile stays.
        """
        began = time.time()
        closed: set[str] = set()

        def look() -> bool:
            for connection in self._ask("GET", "/api/connections"):
                name = connection.get("name")
                if name and name not in closed and connection.get("connected_at", 0) <= began * 1000:
                    self._ask("DELETE", f"/api/connections/{quote(name, safe='')}")
                    closed.add(name)
            return bool(closed) and time.time() > began + SETTLING_S

        wait_until(look)
        return len(closed)

    def _ask(self, method: str, path: str) -> Any:
        request = urllib.request.Request(f"http://{self.broker.host}:{self.management_port}{path}", method=method)
        request.add_header("Authorization", "Basic " + b64encode(b"guest:guest").decode())
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            if error.code == 404 and method == "DELETE":
                return None  # its client was quicker
            raise

    def _broker(self, folder: Path) -> BrokerProcess:
        certificate, key, authority = self.issued.certificate, self.issued.key, self.issued.authority
        if self.name == OURS:
            tls = ("--tls-port", str(self.tls_port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key))
            return OurBroker(folder, options=(*tls, "--management-port", str(self.management_port)))
        assert self.name == RABBITMQ
        oracle = RabbitMQ(
            folder,
            plugins=("rabbitmq_management",),
            settings=(
                f"listeners.ssl.default = 127.0.0.1:{self.tls_port}",
                f"ssl_options.cacertfile = {authority}",
                f"ssl_options.certfile = {certificate}",
                f"ssl_options.keyfile = {key}",
            ),
        )
        oracle.management_port = self.management_port
        return oracle
