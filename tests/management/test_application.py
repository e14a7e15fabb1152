"""The management API over real sockets: what stands between HTTP and the handlers."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import logging
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmdb
import msgspec
import pytest

from amqp_broker.management import application
from amqp_broker.management.http.bodies import BODY_BYTES_MAX
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.responses import BLOCK_BYTES
from amqp_broker.server.server import Server
from tests.management.asking import Desk, find
from tests.running import RunningServer
from tests.store.failing import Fault, inject

JSON = {"Content-Type": "application/json"}
DURABLE = b'{"durable": true}'
GET = b'{"ackmode": "ack_requeue_true", "count": 1, "encoding": "auto"}'


class Browser:
    """Asks a running server over HTTP."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(
        self, method: str, path: str, body: bytes = b"", credentials: str = "guest:guest", **headers: str
    ) -> tuple[int, Any, http.client.HTTPMessage]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        if credentials:
            headers["Authorization"] = "Basic " + base64.b64encode(credentials.encode()).decode()
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, json.loads(text) if text else None, response.headers


@pytest.fixture(scope="module")
def running() -> Iterator[RunningServer]:
    with RunningServer(management=True) as server:
        yield server


@pytest.fixture
def browser(running: RunningServer) -> Browser:
    return Browser(running.server.ports["management"])


def test_a_login_is_answered_in_json(browser: Browser) -> None:
    status, value, headers = browser.ask("GET", "/api/whoami")
    assert (status, value["name"], headers["Content-Type"]) == (200, "guest", "application/json")


@pytest.mark.parametrize("credentials", ["guest:wrong", "nobody:guest"])
def test_a_failed_login_is_refused(browser: Browser, credentials: str) -> None:
    status, value, headers = browser.ask("GET", "/api/whoami", credentials=credentials)
    assert (status, value) == (401, {"error": "not_authorized", "reason": "Not_Authorized"})
    assert "WWW-Authenticate" not in headers


def test_a_request_without_a_login_is_challenged(browser: Browser) -> None:
    status, value, headers = browser.ask("GET", "/api/whoami", credentials="")
    assert (status, value) == (401, None)
    assert headers["WWW-Authenticate"] == 'Basic realm="RabbitMQ Management"'


def test_credentials_that_cannot_be_read_are_a_wrong_request(browser: Browser) -> None:
    status, value, headers = browser.ask("GET", "/api/whoami", credentials="guest")
    assert (status, value) == (400, None)
    assert "WWW-Authenticate" not in headers


def test_an_unknown_path_is_answered_in_json(browser: Browser) -> None:
    assert browser.ask("GET", "/api/nothing")[:2] == (404, {"error": "Object Not Found", "reason": "Not Found"})


@pytest.fixture(scope="module")
def behind_prefix() -> Iterator[int]:
    with RunningServer(management=True, management_path_prefix="/pre/fix") as server:
        yield server.server.ports["management"]


# As RabbitMQ 4.3.6 and 3.10.8 answer.
@pytest.mark.parametrize(
    ("path", "status"),
    [
        *(("/pre/fix", 200), ("/pre/fix/", 200), ("/pre/fix/index.html", 200), ("/pre/fix/js/app.js", 200)),
        *(("/pre/fix/api/overview", 200), ("/pre/fix/api/health/checks/alarms", 200), ("/pre/fix/favicon.ico", 200)),
        *(("/", 301), ("/api/overview", 404), ("/js/app.js", 404), ("/favicon.ico", 404)),
        *(("/pre", 404), ("/pre/fixapi/overview", 404), ("/pre/fix/api/nothing", 404), ("/pre/fix//api/overview", 404)),
    ],
)
def test_all_paths_are_behind_the_prefix(behind_prefix: int, path: str, status: int) -> None:
    login = base64.b64encode(b"guest:guest").decode()
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", behind_prefix, timeout=20)) as connection:
        connection.request("GET", path, headers={"Authorization": f"Basic {login}"})
        response = connection.getresponse()
        response.read()
    assert response.status == status
    assert response.headers.get("Location") == ("/pre/fix/" if status == 301 else None)


def test_an_unsupported_method_is_refused_without_a_body(browser: Browser) -> None:
    status, value, headers = browser.ask("DELETE", "/api/whoami")
    assert (status, value) == (405, None)
    assert headers["Allow"] == "HEAD, GET, OPTIONS"


def test_a_long_answer_is_sent_in_blocks_with_its_length(running: RunningServer, browser: Browser) -> None:
    queues = [{"name": f"long-{number}", "durable": True, "arguments": {}} for number in range(500)]
    assert browser.ask("POST", "/api/definitions/%2F", json.dumps({"queues": queues}).encode(), **JSON)[0] == 204
    status, rows, headers = browser.ask("GET", "/api/queues")
    assert (status, len([row for row in rows if row["name"].startswith("long-")])) == (200, 500)
    assert int(headers["Content-Length"]) == len(msgspec.json.encode(rows)) > BLOCK_BYTES
    assert browser.ask("HEAD", "/api/queues")[:2] == (200, None)


LOGIN = b"Authorization: Basic " + base64.b64encode(b"guest:guest") + b"\r\n"


def exchange(port: int, *pieces: bytes, timeout_s: float = 10.0) -> bytes:
    """Return the answer to some octets, until the peer closes or is silent for a moment."""
    with socket.create_connection(("127.0.0.1", port), timeout_s) as connection:
        for piece in pieces:
            connection.sendall(piece)
        received = b""
        try:
            while data := connection.recv(65536):
                received += data
                connection.settimeout(0.3)
        except (TimeoutError, ConnectionResetError):
            pass
        return received


def request(method: str, path: str, body: bytes = b"", more: bytes = b"") -> bytes:
    length = b"Content-Length: %d\r\n" % len(body)
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n".encode("latin-1") + LOGIN + length + more + b"\r\n" + body


def test_headers_equal_rabbitmqs(browser: Browser) -> None:
    headers = browser.ask("GET", "/api/whoami")[2]
    assert headers["Cache-Control"] == "no-cache"
    assert headers["Vary"] == "accept, accept-encoding, origin"
    assert headers["Content-Security-Policy"] == "script-src 'self'; object-src 'self'"
    # No other origin may use a browser's credentials, as in RabbitMQ unless it is configured.
    assert not [name for name in headers if name.lower().startswith("access-control")]


def test_head_is_get_without_a_body(browser: Browser) -> None:
    got, headed = (browser.ask(method, "/api/whoami") for method in ("GET", "HEAD"))
    assert (headed[0], headed[1]) == (200, None)
    assert headed[2]["Content-Length"] == got[2]["Content-Length"]
    assert browser.ask("HEAD", "/api/nothing")[0] == 404


def test_options_lists_the_methods_without_a_login(browser: Browser) -> None:
    status, value, headers = browser.ask("OPTIONS", "/api/queues/%2F/q", credentials="")
    assert (status, value, headers["Allow"]) == (200, None, "HEAD, GET, PUT, DELETE, OPTIONS")


def test_a_known_user_without_the_tag_is_not_challenged(running: RunningServer, browser: Browser) -> None:
    running.ask(lambda server: server.broker.users.add("plain", "plain"))
    status, value, headers = browser.ask("GET", "/api/whoami", credentials="plain:plain")
    assert (status, value) == (401, {"error": "not_authorised", "reason": "Not management user"})
    assert "WWW-Authenticate" not in headers


def test_a_request_waits_until_its_vhost_is_there_again(running: RunningServer, browser: Browser) -> None:
    seen: list[str] = []

    def end(server: Server) -> None:
        seen.append("up")
        server.broker.vhosts["/"].is_down = False

    def begin(server: Server) -> None:
        server.broker.vhosts["/"].is_down = True
        server.loop.call_later(0.02, end, server)

    running.ask(begin)
    assert browser.ask("GET", "/api/queues")[0] == 200
    assert browser.ask("GET", "/api/queues/%2F")[0] == 200
    assert seen == ["up"]


def test_a_queue_of_any_name_is_created_found_and_deleted(browser: Browser) -> None:
    for name in ("a%2Fb", "a%252Fb", "%00", "%FF", "a%20b", "%E2%82%AC", "%3F%23", "a+b", "..%2F..", "%0Bx"):
        path = f"/api/queues/%2F/{name}"
        assert browser.ask("PUT", path, b"{}")[0] == 201
        status, value, _ = browser.ask("GET", path)
        assert (status, value["vhost"]) == (200, "/")
        assert browser.ask("DELETE", path)[0] == 204


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/../api/whoami", 200),
        ("/api/%2e%2e/%2E%2e/etc/passwd", 404),
        ("/api/whoami/", 200),
        ("//api/whoami", 404),
        ("/api/queues/%zz", 400),
        ("/api/whoami%00", 404),
        ("/api/whoami?%zz=%", 200),
        ("/api/whoami?columns=name&columns=x", 200),
        ("/" + "a/" * 3000, 404),
        ("http://a/api/whoami", 200),
    ],
)
def test_malformed_paths_are_answered(browser: Browser, path: str, status: int) -> None:
    assert b" %d " % status in exchange(browser.port, request("GET", path)).split(b"\r\n")[0]


@pytest.mark.parametrize(
    "octets",
    [
        b"\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /api/whoami HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
        request("PUT", "/api/queues/%2F/q", more=b"Content-Length: x\r\n"),
    ],
)
def test_invalid_http_is_refused_and_the_server_continues(browser: Browser, octets: bytes) -> None:
    answer = exchange(browser.port, octets)
    assert not answer or b" 400 " in answer.split(b"\r\n")[0]
    assert b"Traceback" not in answer
    assert browser.ask("GET", "/api/whoami")[0] == 200


def test_requests_in_one_piece_are_answered_in_order(browser: Browser) -> None:
    path = "/api/queues/%2F/pipelined"
    steps = (request("PUT", path, b"{}"), request("GET", path), request("DELETE", path), request("GET", path))
    answers = exchange(browser.port, b"".join(steps))
    assert re.findall(rb"HTTP/1\.1 (\d+)", answers) == [b"201", b"200", b"204", b"404"]


def test_a_connection_is_kept_for_the_next_request(browser: Browser) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", browser.port, timeout=20)
    for _ in range(3):
        connection.request("GET", "/api/nothing")
        assert connection.getresponse().read()
        taken = connection.sock
        assert taken is not None
    connection.close()


@pytest.mark.parametrize("pieces", [(b"{}",), (b"", b"{}")], ids=["at once", "later"])
def test_a_body_that_is_not_encoded_as_it_says_is_refused(
    browser: Browser, pieces: tuple[bytes, ...], caplog: pytest.LogCaptureFixture
) -> None:
    head = b"PUT /api/queues/%2F/q HTTP/1.1\r\nHost: localhost\r\n" + LOGIN
    with socket.create_connection(("127.0.0.1", browser.port), timeout=20) as peer:
        peer.sendall(head + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n" + pieces[0])
        for piece in pieces[1:]:
            assert browser.ask("GET", "/api/whoami")[0] == 200  # the first part has been read by now
            peer.sendall(piece)
        answer = b""
        while octets := peer.recv(65536):
            answer += octets
    assert answer.startswith(b"HTTP/1.1 400 Bad Request")
    assert answer.endswith(b'{"error":"bad_request","reason":"The body does not match its headers"}')
    assert not caplog.records


def test_a_failing_disk_delays_only_changes(tmp_path: Path) -> None:
    with RunningServer(management=True, ephemeral=False, data_dir=str(tmp_path / "data")) as stuck:
        asking = Browser(stuck.server.ports["management"])
        assert asking.ask("PUT", "/api/queues/%2F/q", DURABLE)[0] == 201
        fault = Fault(("put", "delete", "commit"), 1, lmdb.DiskError("No space left on device"))
        stuck.ask(lambda server: inject(server, fault))
        assert asking.ask("DELETE", "/api/queues/%2F/q")[0] == 204  # in the transaction that was open already
        late: list[int] = []
        thread = threading.Thread(target=lambda: late.append(asking.ask("PUT", "/api/queues/%2F/late", DURABLE)[0]))
        thread.start()
        stuck.until(lambda server: server.store is not None and server.store.is_failing)
        assert asking.ask("PUT", "/_broker/memory-limit", b'{"value": "0.6"}')[0] == 204
        assert asking.ask("POST", "/api/queues/%2F/late/get", GET)[:2] == (200, [])
        assert asking.ask("GET", "/api/queues")[0] == 200
        assert late == []
        fault.is_healed = True
        thread.join(20)
        assert late == [201]


def test_a_body_that_is_too_large_is_not_read(browser: Browser) -> None:
    head = request("PUT", "/api/queues/%2F/q").replace(
        b"Content-Length: 0", b"Content-Length: %d" % (BODY_BYTES_MAX + 1)
    )
    answer = exchange(browser.port, head)
    assert b" 413 " in answer.split(b"\r\n")[0]
    assert b'"reason":"Exceeded HTTP request body size limit"' in answer


def test_a_body_that_becomes_too_large_is_refused(browser: Browser) -> None:
    head = request("PUT", "/api/queues/%2F/q").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", browser.port), 20) as connection:
        connection.sendall(head)
        try:
            for _ in range(BODY_BYTES_MAX // 0x100000 + 2):
                connection.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert b" 413 " in connection.recv(65536).split(b"\r\n")[0]


def test_a_large_body_is_accepted(browser: Browser) -> None:
    body = b'{"arguments":{' + b" " * (BODY_BYTES_MAX - 100) + b"}}"
    assert browser.ask("PUT", "/api/queues/%2F/large", body)[0] == 201


@pytest.mark.parametrize(
    "pieces",
    [
        (b"",),
        (b"GET /api/whoami HTT",),
        (request("GET", "/api/whoami")[:-2],),
        (request("PUT", "/api/queues/%2F/q", b"{}")[:-1],),
        (request("PUT", "/api/queues/%2F/q").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked"), b"5\r\nab"),
        (request("GET", "/api/whoami"),),
    ],
    ids=["nothing", "request line", "headers", "body", "chunk", "idle"],
)
def test_a_slow_peer_is_disconnected(pieces: tuple[bytes, ...], caplog: pytest.LogCaptureFixture) -> None:
    with RunningServer(management=True) as running:

        def be_impatient(server: Any) -> None:
            server.http.management.patience.limit_s = 0.3

        running.ask(be_impatient)
        begun = time.monotonic()
        with socket.create_connection(("127.0.0.1", running.server.ports["management"]), 20) as connection:
            for piece in pieces:
                connection.sendall(piece)
            try:
                while connection.recv(65536):
                    pass
            except ConnectionResetError:
                pass
        assert time.monotonic() - begun > 0.2
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_a_failing_handler_does_not_disclose_its_error(running: RunningServer, browser: Browser) -> None:
    def break_it(server: Any) -> None:
        server.broker.alarms = None

    def mend_it(server: Any) -> None:
        server.broker.alarms = set()

    running.ask(break_it)
    try:
        answer = browser.ask("GET", "/api/nodes")
    finally:
        running.ask(mend_it)
    assert answer[:2] == (500, {"error": "internal_error", "reason": "Internal Server Error"})


DEFINITIONS = b'{"users": [{"name": "mallory", "password": "x", "tags": "administrator"}]}'


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain", "Cookie": "auth=x"}, 415),
        ({"Content-Type": "application/json", "Origin": "http://evil.example"}, 403),
        ({"Content-Type": "application/json", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "application/json", "Host": "evil.example"}, 403),
    ],
)
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/api/definitions"), ("POST", "/_broker/stop"), ("PUT", "/api/users/mallory")]
)
def test_a_request_of_another_site_changes_nothing(
    running: RunningServer, browser: Browser, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    assert browser.ask(method, path, DEFINITIONS, **headers)[0] == status
    assert running.ask(lambda server: "mallory" in server.broker.users) is False


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST", "PATCH"])
@pytest.mark.parametrize("path", ["/api/whoami", "/_broker/clock", "/_broker/events", "/nothing"])
def test_another_site_gets_no_answer_by_any_method(browser: Browser, method: str, path: str) -> None:
    assert browser.ask(method, path, b"", "guest:guest", **{"Sec-Fetch-Site": "cross-site"})[0] == 403


def test_further_names_of_a_loopback_address_are_a_setting() -> None:
    with RunningServer(management=True, management_hosts="Proxy.test, broker.test") as running:
        browser = Browser(running.server.ports["management"])
        found = [
            browser.ask("GET", "/api/whoami", Host=name)[0] for name in ("proxy.test", "broker.test:80", "other.test")
        ]
    assert found == [200, 200, 403]


def test_the_name_of_the_machine_is_a_name_of_a_loopback_address(browser: Browser) -> None:
    assert browser.ask("GET", "/api/whoami", Host=socket.gethostname())[0] == 200


@pytest.mark.parametrize(
    ("path", "is_collected"), [("/_broker/livez", False), ("/api/version", False), ("/api/whoami", True)]
)
def test_a_client_without_a_login_causes_no_walk_over_all_channels(path: str, is_collected: bool) -> None:
    desk = Desk()
    for _ in range(20):
        desk.lab.connect()
    endpoint, names = find("GET", path)
    request = Request(desk.broker, desk.node, desk.user, "GET", names, {}, {}, b"")
    steps = list(application._handled(endpoint, request))
    assert (len(steps) >= 20) is is_collected
