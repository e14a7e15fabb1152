"""Nothing remains of clients that leave in the middle of a request, even if no garbage is collected."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import http.client
import socket
import tracemalloc
import zlib
from collections.abc import Iterator

import pytest

from amqp_broker.server.server import Server
from compat.waiting import wait_until
from tests.running import RunningServer

uvloop = pytest.importorskip("uvloop", reason="a transport of asyncio is a cycle of its own")

LOGIN = b"Authorization: Basic " + base64.b64encode(b"guest:guest") + b"\r\n"
OCTETS = b"x" * 100_000
PACKER = zlib.compressobj(wbits=31)
PACKED = PACKER.compress(b"x" * 3_000_000) + PACKER.flush(zlib.Z_SYNC_FLUSH)
# The headers of a body, and its first part.
BODIES = {
    "none": (b"", b""),
    "length": (b"Content-Length: 20000000\r\n", OCTETS),
    "short": (b"Content-Length: 8000\r\n", OCTETS[:7000]),
    "chunked": (b"Transfer-Encoding: chunked\r\n", b"%x\r\n%s\r\n" % (len(OCTETS), OCTETS)),
    "chunk": (b"Transfer-Encoding: chunked\r\n", b"1000\r\nabc"),
    "gzip": (b"Content-Encoding: gzip\r\nContent-Length: 1000000\r\n", PACKED),
    "gzip chunked": (
        b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        b"%x\r\n%s\r\n" % (len(PACKED), PACKED),
    ),
}
# A public endpoint, a form, endpoints that need a login, the page, and paths without an endpoint.
REQUESTS = (
    *("GET /_broker/livez", "PUT /_broker/livez", "GET /api/health/checks/alarms", "POST /api/login", "GET /api/login"),
    *("GET /api/overview", "PUT /api/queues/%2F/q", "POST /api/definitions", "DELETE /api/queues/%2F/none"),
    *("GET /", "GET /js/app.js", "GET /api/nothing", "POST /api/nothing", "NONSENSE /"),
)
METRICS = ("GET /metrics", "POST /metrics", "GET /metrics/detailed", "GET /nothing")


@pytest.fixture(scope="module")
def running() -> Iterator[RunningServer]:
    with RunningServer(uvloop.new_event_loop, management=True, prometheus=True) as server:
        for name, path in (("management", "/api/overview"), ("prometheus", "/metrics")):
            # aiohttp is imported for the first request.
            connection = http.client.HTTPConnection("127.0.0.1", server.server.ports[name], timeout=20)
            connection.request(
                "GET", path, headers={"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode()}
            )
            assert connection.getresponse().read()
            connection.close()
        yield server


def abort(port: int, head: bytes, body: bytes, is_reset: bool) -> None:
    """Send the head of a request and a part of its body, and leave."""
    with socket.create_connection(("127.0.0.1", port), 20) as peer:
        with contextlib.suppress(OSError):  # the broker need not wait for the body
            peer.sendall(head + body)
        if is_reset:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def heads(line: str, of_body: bytes) -> Iterator[bytes]:
    begun = line.encode() + b" HTTP/1.1\r\nHost: localhost\r\n" + of_body
    yield begun + b"\r\n"
    yield begun + LOGIN + b"\r\n"
    yield begun + b"Authorization: Basic !\r\n\r\n"


def abort_many(port: int, line: str, count: int) -> None:
    for of_body, body in BODIES.values():
        for head in heads(line, of_body):
            for number in range(count):
                abort(port, head, body, is_reset=number % 2 == 0)


def settle(running: RunningServer) -> None:
    """Wait until the broker has noticed that all clients have left, and has done what they asked for."""

    def is_busy(server: Server) -> bool:
        listeners = server.http._listeners
        return any(
            each._runner.server.connections for each in listeners if each._runner and each._runner.server
        ) or any("RequestHandler" in repr(task) for task in asyncio.all_tasks())

    # A thousand requests for metrics take seconds, and more on a busy machine.
    wait_until(lambda: not running.ask(is_busy), timeout_s=60)


@pytest.mark.parametrize("count", [5, pytest.param(50, marks=pytest.mark.verify)])
@pytest.mark.parametrize("line", [*REQUESTS, *METRICS])
def test_nothing_remains_of_requests_that_were_aborted(
    running: RunningServer, line: str, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Each of `count` by 7 encodings by 3 logins."""
    port = running.server.ports["prometheus" if line in METRICS else "management"]
    abort_many(port, line, 2)  # caches are filled, and modules imported
    settle(running)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        objects = len(gc.get_objects())
        abort_many(port, line, count)
        settle(running)
        more_octets, more_objects = tracemalloc.get_traced_memory()[0], len(gc.get_objects()) - objects
    finally:
        tracemalloc.stop()
        gc.enable()
    requests = count * 3 * len(BODIES)
    # A request that remained would have fifteen objects at least, and 7000 octets of a body.
    assert more_objects < requests * 5
    assert more_octets < requests * 2000 + 300_000
    assert not [record for record in caplog.records if record.exc_info]
