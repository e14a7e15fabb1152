from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from amqp_broker.compare.upstream import NoUpstream, Upstream, ask, nearest_profile
from amqp_broker.shovel.shovel_definition import parse_uri
from compat.brokers import free_port
from tests.running import RunningServer


def asked(url: str) -> Upstream:
    return asyncio.run(ask(parse_uri(url)))


def test_the_upstream_reports_version_and_limits() -> None:
    with RunningServer(compat="3.13", channel_max=100, frame_max=200_000) as upstream:
        found = asked(f"amqp://127.0.0.1:{upstream.port}")
    assert (found.product, found.version, found.profile) == ("RabbitMQ", "3.13.7", "3.13")
    assert (found.channel_max, found.frame_max) == (100, 200_000)


@pytest.mark.parametrize(
    ("version", "profile"),
    [
        ("3.8.1", "3.13"),
        ("3.10.8", "3.13"),
        ("3.13.7", "3.13"),
        ("4.0.1", "4.0"),
        ("4.2.0", "4.2"),
        ("4.3.1", "4.3"),
        ("5.0", "4.3"),
        ("?", "4.2"),
    ],
)
def test_the_profile_is_the_newest_that_is_not_newer(version: str, profile: str) -> None:
    assert nearest_profile(version) == profile


def test_an_unreachable_upstream_is_an_error() -> None:
    with pytest.raises(NoUpstream, match=r"cannot connect to amqp://127\.0\.0\.1:\d+: .*") as refused:
        asked(f"amqp://127.0.0.1:{free_port()}")
    assert not refused.value.is_refusal


def test_a_missing_certificate_file_is_named() -> None:
    with pytest.raises(NoUpstream, match=r"No such file or directory \(cacertfile=/no/ca\.pem\)"):
        asked("amqps://127.0.0.1:1?cacertfile=/no/ca.pem")


def test_a_refused_login_is_reported_without_the_password() -> None:
    with RunningServer() as upstream, pytest.raises(NoUpstream, match="refuses the login of 'guest'") as refused:
        asked(f"amqp://guest:wrong@127.0.0.1:{upstream.port}")
    assert refused.value.is_refusal
    assert "wrong" not in str(refused.value)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"AMQP\0\0\x09\1", b""])
def test_a_server_of_another_protocol_is_an_error(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            accepted, _ = listener.accept()
            with accepted:
                accepted.recv(8)
                accepted.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(NoUpstream):
            asked(f"amqp://127.0.0.1:{listener.getsockname()[1]}")
        thread.join(10)
