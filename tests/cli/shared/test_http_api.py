from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from amqp_broker.cli.shared.http_api import Api, Place, Refused, TimedOut, Unreachable, parse
from tests.cli.canned import canned


@contextmanager
def saying(octets: bytes) -> Iterator[int]:
    """A port where these octets are the answer to everything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            stream, _ = listener.accept()
            with stream:
                stream.recv(4096)
                stream.sendall(octets)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(5)


def test_an_answer_is_its_status_and_its_json() -> None:
    with canned({"GET /api/x": {"a": [1, "ü"]}}) as api:
        answer = Api(api.place).get("/api/x")
    assert (answer.status, answer.value, answer.is_ok) == (200, {"a": [1, "ü"]}, True)


def test_a_body_is_sent_as_json_and_the_reason_of_a_refusal_is_read() -> None:
    with canned({"PUT /api/x": (400, {"error": "bad_request", "reason": "no"})}) as api:
        answer = Api(api.place).ask("PUT", "/api/x", {"a": 1}, X_Reason="because")
        assert api.asked == [("PUT /api/x", {"a": 1})]
        assert api.headers[0]["X-Reason"] == "because"
    assert (answer.is_ok, answer.reason) == (False, "no")


@pytest.mark.parametrize(
    ("place", "host"), [(Place("a.sock"), "localhost"), (Place(host="a.b"), "a.b"), (Place(host="::1"), "[::1]")]
)
def test_the_host_is_named_as_in_a_url(place: Place, host: str) -> None:
    assert f"\r\nHost: {host}\r\n".encode() in Api(place).head("GET", "/", b"", {})


def test_a_missing_socket_is_unreachable(tmp_path: object) -> None:
    with pytest.raises(Unreachable, match="No such file"):
        Api(Place(path=f"{tmp_path}/none.sock")).get("/")


def test_a_server_without_http_is_unreachable() -> None:
    with saying(b"AMQP\0\0\x09\x01") as port, pytest.raises(Unreachable, match="does not speak HTTP"):
        Api(Place(host="127.0.0.1", port=port)).get("/")


def test_an_incomplete_answer_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="middle"):
        parse(b"HTTP/1.0 200 OK\r\nContent-Length: 10\r\n\r\n{}")


def test_a_late_answer_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(TimedOut):
        Api(Place(host="127.0.0.1", port=listener.getsockname()[1]), timeout_s=0.05).get("/")


def test_an_answer_may_be_nested_deeper_than_pythons_stack() -> None:
    value, levels = parse(b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 5000 + b"]" * 5000).value, 0
    while value:
        [value], levels = value, levels + 1
    assert levels == 4999


def test_a_body_that_is_not_json_is_text() -> None:
    assert parse(b"HTTP/1.1 500 Oops\r\n\r\n<html>").value == "<html>"


@pytest.mark.parametrize("page", [b"", b"\n<!DOCTYPE HTML>\n<html>\n</html>\n"])
def test_an_answer_without_a_reason_is_explained_in_one_sentence(page: bytes) -> None:
    with saying(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: %d\r\n\r\n%b" % (len(page), page)) as port:
        answer = Api(Place(host="127.0.0.1", port=port)).get("/x")
    assert answer.reason == "the server there is not an amqp-broker: HTTP status 502"


def test_a_streamed_answer_is_read_in_whole_lines() -> None:
    with saying(b"HTTP/1.0 200 OK\r\n\r\none\n\ntwo\nhal") as port:
        assert list(Api(Place(host="127.0.0.1", port=port)).lines("/x")) == [b"one\n", b"\n", b"two\n"]


def test_a_streamed_answer_may_be_an_error() -> None:
    refusal = b'HTTP/1.0 404 Not Found\r\nContent-Length: 16\r\n\r\n{"reason": "no"}'
    with saying(refusal) as port, pytest.raises(Refused, match="no") as refused:
        list(Api(Place(host="127.0.0.1", port=port)).lines("/x"))
    assert refused.value.answer.status == 404
    with saying(b"") as port, pytest.raises(Unreachable, match="does not speak HTTP"):
        list(Api(Place(host="127.0.0.1", port=port)).lines("/x"))


def pieces(answer: bytes) -> list[bytes]:
    with saying(answer) as port:
        return list(Api(Place(host="127.0.0.1", port=port)).pieces("/x"))


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_a_long_answer_is_read_in_its_chunks() -> None:
    assert pieces(CHUNKED + b"3\r\none\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n") == [b"one", b"0123456789"]


@pytest.mark.parametrize("rest", [b"", b"3\r\n", b"3\r\non", b"3\r\none", b"3\r\none\r\n", b"3\r\nonelonger\r\n"])
def test_a_long_answer_without_its_end_is_an_error(rest: bytes) -> None:
    with pytest.raises(Unreachable, match="the connection was closed in the middle of an answer"):
        pieces(CHUNKED + rest)


def test_a_long_answer_without_chunks_is_explained() -> None:
    with pytest.raises(Unreachable, match="its answer has no chunks"):
        pieces(b"HTTP/1.1 200 OK\r\n\r\nsomething\r\n")


def test_a_long_answer_may_be_an_error() -> None:
    with pytest.raises(Refused, match="no"):
        pieces(b'HTTP/1.1 404 Not Found\r\nContent-Length: 16\r\n\r\n{"reason": "no"}')
    with pytest.raises(Unreachable, match="does not speak HTTP"):
        pieces(b"")
