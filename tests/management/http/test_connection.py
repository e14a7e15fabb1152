from __future__ import annotations

import socket

import pytest

from tests.running import RunningServer


def test_a_request_that_is_not_http_is_refused_without_the_name_of_a_library(caplog: pytest.LogCaptureFixture) -> None:
    with (
        RunningServer(management=True) as running,
        socket.create_connection(("127.0.0.1", running.server.ports["management"]), timeout=20) as peer,
    ):
        peer.sendall(b"\x16\x03\x01\x02\x00nonsense\r\n\r\n")
        answer = b""
        while octets := peer.recv(65536):
            answer += octets
    assert answer.split(b" ", 2)[1] == b"400"
    assert b"Server: Cowboy\r\n" in answer
    assert b"aiohttp" not in answer
    assert answer.endswith(b'{"error":"bad_request","reason":"The request is not valid HTTP"}')
    assert "Error handling request" not in caplog.text
