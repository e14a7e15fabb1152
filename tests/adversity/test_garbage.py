"""Peers that send nothing, incomplete frames or another protocol."""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Iterable

import pytest
from pamqp import commands, frame

from compat.brokers import AmqpBroker
from compat.waiting import wait_until
from tests.adversity.watching import MIB, memory_bytes, needs_proc, open_files
from tests.client import PROTOCOL_HEADER, Client
from tests.peer import publish_bytes

TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(190))
HTTP_GET = b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: scanner\r\n\r\n"
# First octets of other protocols.
GREETINGS = {
    "nothing": b"",
    "one octet": b"A",
    "half a header": PROTOCOL_HEADER[:5],
    "HTTP": HTTP_GET,
    "TLS": TLS_HELLO,
    "AMQP 1.0": b"AMQP\x00\x01\x00\x00",
    "MQTT": b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04test",
    "zeros": bytes(100_000),
    "a huge frame": PROTOCOL_HEADER + struct.pack(">BHI", 1, 0, 0xFFFF_FFFF) + bytes(1000),
    "an unknown frame": PROTOCOL_HEADER + struct.pack(">BHI", 77, 0, 4) + b"abcd\xce",
    "frames before the login": PROTOCOL_HEADER + publish_bytes("q", b"x"),
    "garbage": random.Random(1).randbytes(100_000),
    "garbage after a header": PROTOCOL_HEADER + random.Random(2).randbytes(1000),
}


def greet_and_go(port: int, greetings: Iterable[bytes], *, with_reset: bool) -> None:
    for greeting in greetings:
        peer = Client(port)
        with contextlib.suppress(ConnectionError):  # the broker has closed the connection
            peer.send_bytes(greeting)
        if with_reset:
            peer.reset()
        else:
            peer.close()
    # Connections are accepted in order, so all others are accepted before this one is answered.
    Client(port).open().close()


@needs_proc
@pytest.mark.parametrize("with_reset", [False, True], ids=["closed", "reset"])
def test_port_scans_leak_nothing(broker: AmqpBroker, client: Client, with_reset: bool) -> None:
    files = open_files(broker.pid)
    greet_and_go(broker.port, GREETINGS.values(), with_reset=with_reset)
    wait_until(lambda: open_files(broker.pid) <= files)
    memory = memory_bytes(broker.pid)
    scans = list(GREETINGS.values())[:8] * 150
    greet_and_go(broker.port, scans, with_reset=with_reset)
    wait_until(lambda: open_files(broker.pid) <= files)
    assert memory_bytes(broker.pid) < memory + 16 * MIB
    client.sync()


@pytest.mark.parametrize("greeting", GREETINGS)
def test_an_invalid_greeting_gets_a_short_answer_and_a_close(broker: AmqpBroker, client: Client, greeting: str) -> None:
    with Client(broker.port) as stranger:
        stranger.send_bytes(GREETINGS[greeting])
        stranger.socket.shutdown(1)
        assert len(stranger.expect_end()) < 1000
    client.sync()


def test_an_http_client_gets_the_protocol_header_and_a_close(broker: AmqpBroker) -> None:
    with Client(broker.port) as browser:
        browser.send_bytes(HTTP_GET)
        assert browser.expect_end() == PROTOCOL_HEADER


@needs_proc
def test_a_connection_may_be_cut_after_any_octet(broker: AmqpBroker, client: Client) -> None:
    client.declare("cut")
    conversation = b"".join(
        [
            PROTOCOL_HEADER,
            frame.marshal(commands.Connection.StartOk({"capabilities": {}}, "PLAIN", "\0guest\0guest"), 0),
            frame.marshal(commands.Connection.TuneOk(2047, 131072, 60), 0),
            frame.marshal(commands.Connection.Open("/"), 0),
            frame.marshal(commands.Channel.Open(), 1),
            frame.marshal(commands.Queue.Declare(queue="cut", exclusive=False), 1),
            frame.marshal(commands.Basic.Consume(queue="cut"), 1),
            publish_bytes("cut", b"x" * 300, frame_size=100)[:-1],
        ]
    )
    files = open_files(broker.pid)
    for size in range(len(conversation)):
        greet_and_go(broker.port, [conversation[:size]], with_reset=size % 2 == 0)
    wait_until(lambda: open_files(broker.pid) <= files)
    answer = client.declare("cut", passive=True)
    assert (answer.message_count, answer.consumer_count) == (0, 0)


@needs_proc
def test_a_connection_cut_in_a_large_body_disturbs_no_other_client(broker: AmqpBroker, client: Client) -> None:
    client.declare("large")
    client.consume("large", no_ack=True)
    files, memory = open_files(broker.pid), memory_bytes(broker.pid)
    whole = publish_bytes("large", bytes(15 * MIB))
    for _ in range(8):
        publisher = Client(broker.port).open()
        publisher.send_bytes(whole[: len(whole) * 9 // 10])
        publisher.reset()
    wait_until(lambda: open_files(broker.pid) <= files)
    assert memory_bytes(broker.pid) < memory + 64 * MIB
    client.publish("large", b"the only whole one")
    assert client.expect_delivery()[1] == b"the only whole one"


def test_garbage_in_an_open_connection_ends_only_that_connection(broker: AmqpBroker, client: Client) -> None:
    chance = random.Random(3)
    for _ in range(50):
        with Client(broker.port).open() as peer:
            peer.send_bytes(chance.randbytes(200))
            peer.socket.shutdown(1)
            peer.expect_end()
    client.sync()


@needs_proc
def test_a_peer_that_sends_after_the_end_of_its_connection_is_disconnected(broker: AmqpBroker, client: Client) -> None:
    files, memory = open_files(broker.pid), memory_bytes(broker.pid)
    with Client(broker.port).open() as peer:
        peer.send_bytes(b"\x01\x00\x00\x00\x00\x00\x00\x00")
        assert peer.expect(commands.Connection.Close, channel=0).reply_code == 501
        for _ in range(100):
            peer.send_bytes(bytes(MIB))
        assert memory_bytes(broker.pid) < memory + 32 * MIB
    wait_until(lambda: open_files(broker.pid) <= files)
    client.sync()
