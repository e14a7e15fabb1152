"""Peers that take too long."""

from __future__ import annotations

import contextlib
import time

from pamqp import commands

from tests.client import PROTOCOL_HEADER, Client
from tests.running import RunningServer

HEARTBEAT_FRAME = b"\x08\x00\x00\x00\x00\x00\x00\xce"


def test_unfinished_handshakes_do_not_pile_up() -> None:
    with RunningServer(handshake_timeout_ms=1500) as running, Client(running.port).open() as client:
        waiting = [Client(running.port) for _ in range(200)]
        for number, peer in enumerate(waiting):
            # Steps of the handshake for each client. On a slow machine some are disconnected already.
            with contextlib.suppress(ConnectionError):
                if number % 3 == 1:
                    peer.send_bytes(PROTOCOL_HEADER)
                elif number % 3 == 2:
                    peer.log_in()
        running.until(lambda server: len(server.transports) == 1)
        for peer in waiting:
            peer.expect_end()
        # The finished client stays.
        client.sync()


def test_sending_octet_by_octet_does_not_extend_a_handshake() -> None:
    with RunningServer(handshake_timeout_ms=1500) as running:
        peer, octets = Client(running.port), 0
        with contextlib.suppress(ConnectionError):
            peer.send_bytes(PROTOCOL_HEADER)
            peer.expect(commands.Connection.Start, channel=0)
            while octets < 10_000:
                peer.send_bytes(b"\x01\x00\x00\x00\x00\x10\x00"[octets : octets + 1] or b"\x00")
                octets += 1
                time.sleep(0.01)
        assert octets < 10_000
        running.until(lambda server: not server.transports)


def test_heartbeats_detect_dead_clients() -> None:
    with RunningServer() as running:
        client = Client(running.port).open(heartbeat=0)
        client.declare("q")
        dead, beating, talking = (Client(running.port).open(heartbeat=1) for _ in range(3))
        client.publish("q", b"work")
        dead.consume("q")
        dead.expect_delivery()
        heard = b""
        beating.socket.settimeout(0.2)
        while running.ask(lambda server: len(server.broker.connections)) == 4:
            beating.send_bytes(HEARTBEAT_FRAME)
            talking.sync()
            with contextlib.suppress(TimeoutError):
                heard += beating.socket.recv(1000)
        # Unsettled messages of the dead client are requeued.
        assert client.ready_count("q") == 1
        assert dead.expect_end().replace(HEARTBEAT_FRAME, b"") == b""
        # An idle client receives only heartbeats.
        assert heard
        assert heard.replace(HEARTBEAT_FRAME, b"") == b""
        talking.sync()


def test_a_dead_peer_with_a_full_socket_is_disconnected() -> None:
    with RunningServer() as running, Client(running.port).open() as client:
        dead = Client(running.port, receive_bytes=16 * 1024).open(heartbeat=1)
        dead.declare("q")
        dead.consume("q")
        for _ in range(16):
            client.publish("q", bytes(1_000_000))
        client.sync()
        running.until(lambda server: server.broker.vhosts["/"].queues["q"].ready_count == 16)
        assert running.ask(lambda server: len(server.broker.connections)) == 1
        # Its socket never empties, but is closed later.
        running.live_through(60_000)
        running.until(lambda server: len(server.transports) == 1)
