from __future__ import annotations

import gzip
import http.client
import socket
import zlib
from collections.abc import Iterator

import pytest

from amqp_broker.management.http.bodies import FORM_BYTES_MAX
from tests.management.test_application import LOGIN, Browser, exchange
from tests.running import RunningServer

FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with RunningServer(management=True, prometheus=True) as running:
        yield running.server.ports["management"]


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize("path", ["/_broker/livez", "/api/health/checks/alarms", "/api/overview", "/api/queues"])
@pytest.mark.parametrize("of_body", [b"Content-Length: 20000000", b"Transfer-Encoding: chunked"])
def test_a_get_is_answered_without_its_body(port: int, path: str, of_body: bytes) -> None:
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n".encode() + LOGIN + of_body + b"\r\n\r\n"
    assert status(exchange(port, head)) == 200


@pytest.mark.parametrize("is_known", [False, True])
def test_a_request_after_an_unread_body_is_answered(port: int, is_known: bool) -> None:
    get = b"GET /_broker/livez HTTP/1.1\r\nHost: localhost\r\n" + (LOGIN if is_known else b"")
    answers = exchange(port, (get + b"Content-Length: 5\r\n\r\nhello") * 3)
    assert answers.count(b"HTTP/1.1 200 OK") == 3


def test_a_login_form_has_a_small_limit(port: int) -> None:
    browser = Browser(port)
    form = b"username=guest&password=guest&padding="
    assert browser.ask("POST", "/api/login", form, "", **{"Content-Type": FORM})[0] == 200
    large = form + b"x" * (FORM_BYTES_MAX - len(form) + 1)
    assert browser.ask("POST", "/api/login", large[:-1], "", **{"Content-Type": FORM})[0] == 200
    status, value, _ = browser.ask("POST", "/api/login", large, "", **{"Content-Type": FORM})
    assert (status, value["error"]) == (413, "payload_too_large")


def test_a_login_form_in_chunks_has_the_same_limit(port: int) -> None:
    head = f"POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: {FORM}\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"
    assert status(exchange(port, head.encode() + chunk * 3)) == 413


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress], ids=["gzip", "deflate"])
def test_a_packed_body_is_unpacked(port: int, pack: object) -> None:
    assert callable(pack)
    encoding = "gzip" if pack is gzip.compress else "deflate"
    body = pack(b'{"durable": true, "arguments": {"x-max-length": 5' + b" " * 1_000_000 + b"}}")
    assert Browser(port).ask("PUT", f"/api/queues/%2F/{encoding}", body, **{"Content-Encoding": encoding})[0] == 201


def test_a_packed_body_that_unpacks_to_too_much_is_refused(port: int) -> None:
    body = gzip.compress(b" " * 30_000_000)
    assert len(body) < 100_000
    assert Browser(port).ask("PUT", "/api/queues/%2F/bomb", body, **{"Content-Encoding": "gzip"})[0] == 413


def test_a_packed_body_that_ends_too_early_is_refused(port: int) -> None:
    body = gzip.compress(b'{"durable": true}')[:-4]
    status, value, _ = Browser(port).ask("PUT", "/api/queues/%2F/cut", body, **{"Content-Encoding": "gzip"})
    assert (status, value["reason"]) == (400, "The body does not match its headers")


def test_headers_have_a_limit_together(port: int) -> None:
    head = b"GET /_broker/livez HTTP/1.1\r\nHost: localhost\r\n"
    some = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 1000) for number in range(40))
    assert status(exchange(port, head + some + b"\r\n")) == 200
    with socket.create_connection(("127.0.0.1", port), 20) as peer:
        peer.sendall(head)
        try:
            for number in range(100):
                peer.sendall(b"X-%d: %s\r\n" % (number, b"x" * 4000))
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = http.client.HTTPResponse(peer)
        try:
            answer.begin()
            assert answer.status == 431
        except ConnectionResetError:
            pass
