from __future__ import annotations

import contextlib
import gc
import http.client
import socket
import tracemalloc
from contextlib import ExitStack
from unittest.mock import Mock

from amqp_broker.management.http.unauthenticated import UnauthenticatedConnections
from amqp_broker.server.server import Server
from compat.waiting import wait_until
from tests.management.test_application import LOGIN, request
from tests.running import RunningServer


def test_the_connection_whose_last_request_is_oldest_gives_way() -> None:
    connections = UnauthenticatedConnections(count_max=2)
    first, second, third, fourth = Mock(), Mock(), Mock(), Mock()
    connections.add(first)
    connections.add(second)
    connections.note_request(first)
    connections.add(third)
    assert [each.transport.abort.call_count for each in (first, second, third)] == [0, 1, 0]
    connections.remove(first)
    connections.add(fourth)
    assert len(connections) == 2
    assert [each.transport.abort.call_count for each in (first, second, third, fourth)] == [0, 1, 0, 0]


def test_connections_that_have_left_or_logged_in_do_not_return() -> None:
    connections = UnauthenticatedConnections(count_max=2)
    gone = Mock()
    connections.add(gone)
    connections.remove(gone)
    connections.remove(gone)
    connections.note_request(gone)
    assert len(connections) == 0


def test_silent_clients_without_a_login_do_not_keep_others_out() -> None:
    with RunningServer(management=True) as running, ExitStack() as stack:
        port = running.server.ports["management"]

        def count(server: Server) -> int:
            return len(server.http.management.unauthenticated)

        known = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        known.request("GET", "/api/whoami", headers={"Authorization": LOGIN.split(b": ")[1].strip().decode()})
        assert known.getresponse().read()
        assert running.ask(count) == 0
        for _ in range(300):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", port), 20))
            peer.sendall(b"GET /_broker/livez HTTP/1.1\r\n")
        wait_until(lambda: running.ask(count) == 256)
        with socket.create_connection(("127.0.0.1", port), 20) as newest:
            newest.sendall(b"GET /_broker/livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert newest.recv(1000).startswith(b"HTTP/1.1 200")
        known.request("GET", "/api/whoami", headers={"Authorization": LOGIN.split(b": ")[1].strip().decode()})
        assert known.getresponse().status == 200
        known.close()


def test_clients_without_a_login_fill_kibibytes_each() -> None:
    """They stay in the middle of their bodies, of which they have sent as much as the broker takes."""
    head = request("POST", "/api/login").replace(LOGIN, b"")
    bodies = (
        (head.replace(b"Content-Length: 0", b"Content-Length: 8000"), b"x" * 7000),
        (head.replace(b"Content-Length: 0", b"Content-Length: 20000000"), b"x" * 1_000_000),
        (head.replace(b"Content-Length: 0", b"Transfer-Encoding: chunked"), b"f0000\r\n" + b"x" * 0xF0000),
        (b"GET /_broker/livez HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n", b"x" * 1_000_000),
        (b"GET /_broker/livez HTTP/1.1\r\nHost: x\r\nUpgrade: h\r\nConnection: upgrade\r\n\r\n", b"x" * 1_000_000),
        (b"GET /_broker/livez HTTP/1.1\r\nHost: x\r\n\r\nGET /" + b"a" * 8000, b""),
        (b"GET /_broker/livez HTTP/1.1\r\nHost: x\r\n\r\n" * 5000, b""),
        (b"GET /_broker/livez HTTP/1.1\r\nX: %s" % (b"x" * 8000), b"\r\nX: x" * 100),
        (b"x" * 8000, b"x" * 1_000_000),
    )
    with RunningServer(management=True) as running, ExitStack() as stack:
        port = running.server.ports["management"]
        with socket.create_connection(("127.0.0.1", port), 20) as first:
            first.sendall(request("GET", "/api/overview"))
            assert first.recv(1000)
        gc.collect()
        tracemalloc.start()
        try:
            for _ in range(20):
                for begun, body in bodies:
                    peer = stack.enter_context(socket.create_connection(("127.0.0.1", port), 20))
                    peer.settimeout(0.05)
                    with contextlib.suppress(OSError):  # the broker reads no further, or has closed the connection
                        peer.sendall(begun + body)
            limit = 20 * len(bodies) * 64 * 1024
            # The broker reads what has arrived, and throws it away.
            wait_until(lambda: running.ask(lambda _: tracemalloc.get_traced_memory()[0]) < limit)
        finally:
            tracemalloc.stop()
