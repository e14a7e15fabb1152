"""Consumers with full sockets, and the broker's end of their connections."""

from __future__ import annotations

from collections.abc import Callable

from amqp_broker.server.server import Server
from amqp_broker.server.transport import Transport
from tests.client import Client
from tests.running import RunningServer

# Together more than all buffers between the broker and a client that does not read.
MESSAGES = 32
BODY_BYTES = 1_000_000
RECEIVE_BYTES = 16 * 1024
# Consecutive checks without a change after which a connection counts as stalled.
LOOKS = 5


def transport_of(client: Client) -> Callable[[Server], Transport]:
    """Finds the broker's end of a client's connection."""
    port = client.socket.getsockname()[1]

    def find(server: Server) -> Transport:
        [transport] = [each for session, each in server.transports.items() if session.peer_port == port]
        assert isinstance(transport, Transport)
        return transport

    return find


def is_paused(client: Client) -> Callable[[Server], bool]:
    find = transport_of(client)
    return lambda server: find(server).session.is_backpressured


def stalled_consumer(running: RunningServer, publisher: Client, queue: str, *, no_ack: bool = True) -> Client:
    """Return a consumer that has read none of its deliveries and whose socket is full."""
    client = Client(running.port, receive_bytes=RECEIVE_BYTES).open()
    client.declare(queue)
    client.consume(queue, no_ack=no_ack)
    for _ in range(MESSAGES):
        publisher.publish(queue, bytes(BODY_BYTES))
    publisher.sync()
    find = transport_of(client)
    seen: list[int] = []

    def is_stuck(server: Server) -> bool:
        seen.append(find(server).socket.get_write_buffer_size())
        return find(server).session.is_backpressured and len(seen) >= LOOKS and len(set(seen[-LOOKS:])) == 1

    running.until(is_stuck)
    return client
