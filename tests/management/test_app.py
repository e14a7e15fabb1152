"""The management API over real sockets: what stands between HTTP and the handlers."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.running import RunningServer


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


def test_who_logs_in_is_answered_in_json(browser: Browser) -> None:
    status, value, headers = browser.ask("GET", "/api/whoami")
    assert (status, value["name"], headers["Content-Type"]) == (200, "guest", "application/json")


@pytest.mark.parametrize("credentials", ["", "guest:wrong", "nobody:guest", "guest"])
def test_who_cannot_log_in_is_challenged(browser: Browser, credentials: str) -> None:
    status, value, headers = browser.ask("GET", "/api/whoami", credentials=credentials)
    assert (status, value) == (401, {"error": "not_authorized", "reason": "Login failed"})
    assert headers["WWW-Authenticate"] == 'Basic realm="RabbitMQ Management"'


def test_what_is_not_there_is_told_in_json(browser: Browser) -> None:
    assert browser.ask("GET", "/api/nothing")[:2] == (404, {"error": "not_found", "reason": "Not Found"})


def test_a_method_that_a_resource_does_not_have_is_told_in_json(browser: Browser) -> None:
    status, value, headers = browser.ask("DELETE", "/api/whoami")
    assert (status, value) == (405, {"error": "method_not_allowed", "reason": "Method Not Allowed"})
    assert headers["Allow"] == "GET"
