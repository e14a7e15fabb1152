"""Nothing remains of clients that leave before they have logged in, even if no garbage is collected."""

from __future__ import annotations

import contextlib
import gc
import logging
import socket
import ssl
import struct
import tracemalloc
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from pamqp import commands, frame

from amqp_broker.server import tls
from amqp_broker.server.server import Server
from compat.waiting import wait_until
from tests.running import RunningServer

uvloop = pytest.importorskip("uvloop", reason="a transport of asyncio is a cycle of its own")

HEADER = b"AMQP\x00\x00\x09\x01"
START_OK = frame.marshal(commands.Connection.StartOk({}, "PLAIN", "\0guest\0wrong", "en_US"), 0)


def client_hello() -> bytes:
    """The first octets of a TLS handshake."""
    context = ssl.create_default_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


HELLO = client_hello()
# By the listener, and its kind.
ATTEMPTS = {
    "amqp: nothing": b"",
    "amqp: half a protocol header": HEADER[:5],
    "amqp: a protocol header": HEADER,
    "amqp: half a start-ok": HEADER + START_OK[: len(START_OK) // 2],
    "amqp: a start-ok with a wrong password": HEADER + START_OK,
    "amqp: most of the largest frame": HEADER + struct.pack(">BHI", 1, 0, 8180) + bytes(8000),
    "amqp: a frame that is too large": HEADER + struct.pack(">BHI", 1, 0, 2**31) + bytes(100_000),
    "amqp: HTTP": b"GET / HTTP/1.1\r\n\r\n",
    "amqps: nothing": b"",
    "amqps: half a hello": HELLO[:100],
    "amqps: a hello": HELLO,
    "amqps: a hello that announces more": b"\x16\x03\x01\x40\x00" + bytes(16_000),
    "amqps: AMQP": HEADER,
    "management: half a head": b"GET /api/overview HTTP/1.1\r\nHost: loc",
    "management: a long head": b"GET / HTTP/1.1\r\nX: " + b"x" * 7000,
    "management: half a body": b"POST /api/login HTTP/1.1\r\nContent-Length: 4000\r\n\r\n" + bytes(3000),
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder: Path = tmp_path_factory.mktemp("certificates")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tls, "own_folder", lambda settings: folder)
        # pytest would keep each line of the log.
        patch.setattr(logging.getLogger("amqp_broker"), "disabled", True)
        for name in ("connection", "server", "session"):
            patch.setattr(logging.getLogger(f"amqp_broker.{name}"), "disabled", True)
        with RunningServer(uvloop.new_event_loop, management=True, tls="auto") as server:
            # aiohttp is imported for the first request.
            with urllib.request.urlopen(f"http://127.0.0.1:{server.server.ports['management']}/_broker/livez"):
                pass
            yield server


def attempt(port: int, said: bytes, is_reset: bool) -> None:
    with socket.create_connection(("127.0.0.1", port), 20) as peer:
        with contextlib.suppress(OSError):  # the broker may have closed the socket
            peer.sendall(said)
        if is_reset:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def is_quiet(server: Server) -> bool:
    http = [each._runner.server for each in server.http._listeners if each._runner is not None]
    return not (
        server.transports
        or server.broker.awaiting_login
        or tls.handshakes
        or any(one is not None and one.connections for one in http)
    )


@pytest.mark.parametrize("count", [30, pytest.param(1000, marks=pytest.mark.verify)])
@pytest.mark.parametrize("kind", ATTEMPTS)
def test_nothing_remains_of_attempts_that_were_aborted(running: RunningServer, kind: str, count: int) -> None:
    port, said = running.server.ports[kind.partition(":")[0]], ATTEMPTS[kind]
    for number in range(4):
        attempt(port, said, is_reset=number % 2 == 0)
    running.until(is_quiet)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        objects = len(gc.get_objects())
        for number in range(count):
            attempt(port, said, is_reset=number % 2 == 0)
        running.until(is_quiet)
        # An attempt that remained would have a transport, a session with its parts, and its octets. The buffers of TLS
        # are freed in a later turn of the loop.
        wait_until(lambda: len(gc.get_objects()) - objects < 3 * count + 400)
        # The rest of the process, with all of its libraries, keeps a few hundred kilobytes of its own.
        wait_until(lambda: tracemalloc.get_traced_memory()[0] < 1000 * count + 2_000_000)
    finally:
        tracemalloc.stop()
        gc.enable()
