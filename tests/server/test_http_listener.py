from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NoReturn

import pytest
import trustme
from aiohttp.http_exceptions import BadHttpMessage

from amqp_broker.server import http_listener
from amqp_broker.server.http_listener import HttpListener, quiet_logger
from amqp_broker.server.listening import listen
from amqp_broker.server.server import Server
from amqp_broker.settings.settings import Settings
from tests.running import RunningServer

READY = """
import sys
before = set(sys.modules)
import asyncio, socket
from amqp_broker.demo import served_demo
from amqp_broker.server.server import Server
from amqp_broker.settings.settings import Settings

def greet(port):
    with socket.create_connection((b"127.0.0.1", port)) as connection:
        connection.sendall(bytes.fromhex("414d515000000901"))
        connection.recv(1)

def ask(port):
    import http.client
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/api/")
    connection.getresponse().read()

async def main():
    server = Server(Settings(port=0, ephemeral=True, control=False, management=True, prometheus=True))
    served_demo.install(server)
    await server.start()
    await asyncio.get_running_loop().run_in_executor(None, greet, server.ports["amqp"])
    print(*{name.partition(".")[0] for name in sys.modules.keys() - before} - sys.stdlib_module_names)
    print(*sorted(sys.modules.keys() & set(sys.argv[1:])))
    await asyncio.get_running_loop().run_in_executor(None, ask, server.ports["management"])
    print("aiohttp" in sys.modules)
    await server.stop()

asyncio.run(main())
"""


# Modules that few brokers use, of more than 100 kB each with what they import.
RARE: Final = (
    *("encodings.idna", "email", "importlib.metadata", "random", "shutil"),
    *("amqp_broker.demo.fault_plan", "amqp_broker.server.shovel_links", "amqp_broker.shovel.shovel"),
)


def test_aiohttp_is_imported_when_the_first_client_connects() -> None:
    """Each module that a start or an AMQP client imports costs every test suite that starts a broker."""
    command = [sys.executable, "-c", READY, *RARE]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=True)
    imported, rare, is_imported_later = done.stdout.splitlines()
    assert rare == ""
    assert set(imported.split()) == {"amqp_broker", "lmdb", "mypy_extensions", "pamqp", "xxhash"}
    assert is_imported_later == "True"


def status(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_clients_that_connect_at_once_are_all_served() -> None:
    with RunningServer(prometheus=True) as running, ThreadPoolExecutor(20) as pool:
        assert list(pool.map(status, [running.server.ports["prometheus"]] * 20)) == [200] * 20


class WithoutReaders(asyncio.SelectorEventLoop):
    """An event loop that cannot wait for sockets, like that of Windows."""

    def add_reader(self, fd: object, callback: object, *args: object) -> None:
        raise NotImplementedError


def test_an_event_loop_that_cannot_wait_for_sockets_serves_at_once() -> None:
    async def ask() -> int:
        server = Server(Settings(port=0, ephemeral=True, control=False, management=False, prometheus=True))
        await server.start()
        try:
            return await asyncio.get_running_loop().run_in_executor(None, status, server.ports["prometheus"])
        finally:
            await server.stop()

    with asyncio.Runner(loop_factory=WithoutReaders) as runner:
        assert runner.run(ask()) == 200


@pytest.mark.parametrize("clients", [0, 1], ids=["before the first client", "with the first client"])
def test_a_listener_is_closed(clients: int) -> None:
    with RunningServer(prometheus=True) as running:
        port = running.server.ports["prometheus"]
        connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(clients)]
    for connection in connections:
        connection.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_listener_that_cannot_serve_says_so_and_can_be_closed(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> NoReturn:
        raise ZeroDivisionError

    async def serve() -> None:
        sockets = listen("127.0.0.1", 0)
        listener = HttpListener(sockets, fail)
        client = await asyncio.get_running_loop().run_in_executor(
            None, socket.create_connection, sockets[0].getsockname()
        )
        with client, pytest.raises(ConnectionResetError):
            await asyncio.get_running_loop().run_in_executor(None, client.recv, 1)
        await listener.close()

    asyncio.run(serve())
    assert [record.getMessage() for record in caplog.records] == ["HTTP cannot be served"]


def test_a_peer_that_does_not_finish_the_handshake_of_tls_is_disconnected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_listener, "DURATION_S_MAX", 0.2)
    certificate = trustme.CA().issue_cert("localhost")
    certificate_file, key_file = tmp_path / "certificate.pem", tmp_path / "key.pem"
    certificate.cert_chain_pems[0].write_to_path(certificate_file)
    certificate.private_key_pem.write_to_path(key_file)
    with (
        RunningServer(management=True, tls_cert_file=str(certificate_file), tls_key_file=str(key_file)) as running,
        socket.create_connection(("127.0.0.1", running.server.ports["management-tls"]), 20) as peer,
        contextlib.suppress(ConnectionResetError),
    ):
        assert peer.recv(1) == b""


def test_the_http_api_may_be_served_with_tls_alone(tmp_path: Path) -> None:
    certificate = trustme.CA().issue_cert("localhost")
    certificate_file, key_file = tmp_path / "certificate.pem", tmp_path / "key.pem"
    certificate.cert_chain_pems[0].write_to_path(certificate_file)
    certificate.private_key_pem.write_to_path(key_file)
    with RunningServer(
        management=True,
        management_tcp=False,
        management_tls_cert_file=str(certificate_file),
        management_tls_key_file=str(key_file),
    ) as running:
        assert {"amqp", "management-tls"} <= running.server.ports.keys()
        assert "management" not in running.server.ports


def test_errors_of_invalid_requests_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = quiet_logger()
    log.error("invalid", exc_info=BadHttpMessage("invalid"))
    log.error("broken", exc_info=ValueError("broken"))
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR] == ["broken"]
