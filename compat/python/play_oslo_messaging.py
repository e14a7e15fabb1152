"""oslo.messaging, OpenStack's library for RPC and notifications: server and client in this process."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg
from protocol import CA_FILE, PATIENCE_S, TLS_URL, URL, ask, main, name

# As OpenStack is deployed at RabbitMQ 4: no queue is transient, and those for replies expire.
SETTINGS = """
[oslo_messaging_rabbit]
rabbit_quorum_queue = true
rabbit_transient_quorum_queue = true
kombu_reconnect_delay = 0.2
"""


def configuration(settings: str) -> cfg.ConfigOpts:
    """Return what a service reads from its file."""
    conf = cfg.CONF
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(SETTINGS + settings)
        file.flush()
        conf(["--config-file", file.name], project="matrix")
    return conf


class Endpoint:
    """The methods that clients call, and what they were called with."""

    def __init__(self) -> None:
        self.casts: list[str] = []

    def double(self, context: dict[str, Any], number: int) -> int:
        return 2 * number

    def note(self, context: dict[str, Any], text: str) -> None:
        self.casts.append(text)


@contextmanager
def service(topic: str, url: str = URL, settings: str = "") -> Iterator[tuple[Any, Endpoint]]:
    """Run a server, and provide a client."""
    transport = messaging.get_rpc_transport(configuration(settings), url=f"rabbit:{url.partition(':')[2]}")
    endpoint, target = Endpoint(), messaging.Target(topic=name(topic), server="matrix")
    server = messaging.get_rpc_server(transport, target, [endpoint])
    server.start()
    try:
        yield messaging.get_rpc_client(transport, messaging.Target(topic=name(topic)), timeout=PATIENCE_S), endpoint
    finally:
        server.stop()
        server.wait()
        transport.cleanup()


def soon(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.02)


def connect() -> None:
    with service("connect") as (client, endpoint):
        client.cast({}, "note", text="hello")
        soon(lambda: endpoint.casts == ["hello"])


def rpc() -> None:
    with service("rpc") as (client, _):
        assert [client.call({}, "double", number=number) for number in range(5)] == [0, 2, 4, 6, 8]


def large() -> None:
    # The envelope must not make the message larger than the broker allows.
    text = "x" * ((16 << 20) - 4096)
    with service("large") as (client, endpoint):
        client.cast({}, "note", text=text)
        soon(lambda: endpoint.casts == [text])


def tls() -> None:
    with service("tls", TLS_URL, f"ssl = true\nssl_ca_file = {CA_FILE}\n") as (client, _):
        assert client.call({}, "double", number=21) == 42


def reconnect() -> None:
    with service("reconnect") as (client, _):
        assert client.call({}, "double", number=1) == 2
        ask("RESTART")
        assert client.call({}, "double", number=2) == 4


main({"connect": connect, "rpc": rpc, "large": large, "tls": tls, "reconnect": reconnect})
