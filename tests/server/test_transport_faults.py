from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvloop

from amqp_broker.broker.lab.fault_rules import Rule
from tests.client import Client
from tests.running import RunningServer


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def running(request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    new_loop: Callable[[], asyncio.AbstractEventLoop] = request.param
    with RunningServer(new_loop) as server:
        yield server


def add(running: RunningServer, action: str, **said: Any) -> Rule:
    def put(server: Any) -> Rule:
        rule: Rule = server.broker.faults.add(Rule(action, **said))
        server.flush()
        return rule

    return running.ask(put)


def rest(connected: socket.socket) -> bytes:
    """Return all octets until the end. Raise ConnectionResetError if that is a RST."""
    connected.settimeout(5)
    return b"".join(iter(lambda: connected.recv(65536), b""))


def test_a_cut_closes_with_a_fin(running: RunningServer) -> None:
    client = Client(running.port)
    client.open()
    add(running, "cut", is_mid_frame=True)
    assert rest(client.socket) == b"\x08\0\0\0\0"


def test_a_reset_sends_a_rst(running: RunningServer) -> None:
    client = Client(running.port)
    client.open()
    add(running, "reset")
    with pytest.raises(ConnectionResetError):
        rest(client.socket)
    running.until(lambda server: not server.transports)


def test_a_reset_in_the_middle_of_a_frame_comes_after_it(running: RunningServer) -> None:
    client = Client(running.port)
    client.open()
    add(running, "reset", is_mid_frame=True)
    # The system may discard received octets when a RST arrives, so they are not checked.
    with pytest.raises(ConnectionResetError):
        rest(client.socket)


def test_a_new_connection_is_reset(running: RunningServer) -> None:
    add(running, "refuse", times=1)
    with socket.create_connection(("127.0.0.1", running.port)) as refused, pytest.raises(ConnectionResetError):
        rest(refused)
    Client(running.port).open().close()


def test_a_black_hole_reads_and_writes_nothing_until_it_ends(running: RunningServer) -> None:
    client = Client(running.port)
    client.open()
    rule = add(running, "black_hole")
    client.socket.sendall(b"\x01\0\1\0\0\0\5\0\x14\0\x0a\0\xce")
    client.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        client.socket.recv(1)
    # Input is not read.
    with pytest.raises(TimeoutError):
        client.socket.sendall(bytes(64 << 20))

    def remove(server: Any) -> None:
        server.broker.faults.remove(rule.id)
        server.flush()

    running.ask(remove)
    client.socket.settimeout(5)
    with pytest.raises(ConnectionError):
        rest(client.socket)
    running.until(lambda server: not server.transports)


def test_a_late_answer_arrives(running: RunningServer) -> None:
    client = Client(running.port)
    client.open()
    add(running, "latency", delay_ms=20, jitter_ms=20)
    client.close()


def test_a_late_request_of_a_client_that_has_gone_is_acted_on(running: RunningServer) -> None:
    client = Client(running.port).open()
    client.declare("q")
    add(running, "latency", delay_ms=200, direction="input")
    # A frame that the shell reads in several parts.
    client.publish("q", bytes(300_000))
    client.socket.close()
    running.until(lambda server: not server.transports)
    running.until(lambda server: server.broker.vhosts["/"].queues["q"].ready_count == 1)
    running.until(lambda server: not server.broker.connections)


def test_a_stream_of_publishes_over_a_slow_link_is_read_as_fast_as_the_link(running: RunningServer) -> None:
    client = Client(running.port).open()
    client.declare("q")
    add(running, "bandwidth", bytes_per_s=4_000_000, direction="input")
    for _ in range(40):
        client.publish("q", bytes(50_000))
    client.declare("q")
    assert client.ready_count("q") == 40
