"""Handshakes of TLS on an open connection, and PROXY headers of load balancers."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from compat.brokers import AmqpBroker
from tests.client import PROTOCOL_HEADER, Client

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="the attack needs openssl")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AmqpBroker]:
    broker = AmqpBroker(tmp_path_factory.mktemp("broker"), options=("--tls", "auto", "--tls-port", "0"))
    with broker.running():
        yield broker


def ask(broker: AmqpBroker, version: str, letters: str) -> str:
    """Connect with a version of TLS, and give openssl some commands. Return its output."""
    port = json.loads(broker.ports_file.read_text("utf-8"))["amqps"]
    with subprocess.Popen(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", version],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    ) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        # The end of its summary, after which it obeys commands.
        seen = ""
        while "Verify return code" not in seen:
            seen += client.stdout.readline()
        for letter in letters:
            client.stdin.write(f"{letter}\n")
            client.stdin.flush()
            line = ""
            while not line.startswith(("RENEGOTIATING", "KEYUPDATE")):
                line = client.stdout.readline()
            seen += line
            if letter == "R":
                # openssl ends when it is refused. At the end of its input it would end without the answer.
                seen += client.stdout.read()
        return seen + client.communicate()[0]


@needs_openssl
def test_a_renegotiation_is_refused(broker: AmqpBroker) -> None:
    assert "no renegotiation" in ask(broker, "-tls1_2", "R")
    Client(broker.port).open().close()


@needs_openssl
@pytest.mark.parametrize("letter", ["k", "K"])
def test_new_keys_disturb_no_other_client(broker: AmqpBroker, letter: str) -> None:
    assert ask(broker, "-tls1_3", letter * 50).count("KEYUPDATE") == 50
    Client(broker.port).open().close()


@pytest.mark.parametrize(
    "header",
    [
        b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 5672\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\xa8\0\x01\xc0\xa8\0\x0b\xdc\x04\x16\x28",
    ],
    ids=["version 1", "version 2"],
)
def test_a_proxy_header_is_answered_with_the_protocol_and_the_end(broker: AmqpBroker, header: bytes) -> None:
    with Client(broker.port) as client:
        client.send_bytes(header + PROTOCOL_HEADER)
        assert client.expect_end() == PROTOCOL_HEADER
