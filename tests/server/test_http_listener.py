from __future__ import annotations

import asyncio
import http.client
import logging
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from aiohttp.http_exceptions import BadHttpMessage

from amqp_broker.server.http_listener import quiet_logger
from amqp_broker.server.server import Server
from amqp_broker.settings.settings import Settings
from tests.running import RunningServer

READY = """
import sys
before = set(sys.modules)
import asyncio, http.client
from amqp_broker.server.server import Server
from amqp_broker.settings.settings import Settings

def ask(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/api/")
    connection.getresponse().read()

async def main():
    server = Server(Settings(port=0, ephemeral=True, control=False, management=True, prometheus=True))
    await server.start()
    print(*{name.partition(".")[0] for name in sys.modules.keys() - before} - sys.stdlib_module_names)
    await asyncio.get_running_loop().run_in_executor(None, ask, server.ports["management"])
    print("aiohttp" in sys.modules)
    await server.stop()

asyncio.run(main())
"""


def test_aiohttp_is_imported_when_the_first_client_connects() -> None:
    """Each library that a start imports costs every test suite that starts a broker."""
    done = subprocess.run([sys.executable, "-c", READY], capture_output=True, encoding="utf-8", timeout=60, check=True)
    imported, is_imported_later = done.stdout.splitlines()
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


def test_errors_of_invalid_requests_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = quiet_logger()
    log.error("invalid", exc_info=BadHttpMessage("invalid"))
    log.error("broken", exc_info=ValueError("broken"))
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR] == ["broken"]
