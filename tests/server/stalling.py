"""Consumers whose sockets are full, and a look at the broker's end of them."""

from __future__ import annotations

from collections.abc import Callable

from amqp_broker.server.server import Server
from amqp_broker.server.transport import Transport
from tests.client import Client
from tests.running import RunningServer

# Together more than fits anywhere between the broker and a client that does not read.
MESSAGES = 32
BODY_BYTES = 1_000_000
RECEIVE_BYTES = 16 * 1024
# Looks in a row at which nothing has moved.
LOOKS = 5


def transport_of(client: Client) -> Callable[[Server], Transport]:
    """Finds the broker's end of a client's connection."""
    port = client.socket.getsockname()[1]
    return lambda server: next(t for session, t in server.transports.items() if session.peer_port == port)


def is_paused(client: Client) -> Callable[[Server], bool]:
    find = transport_of(client)
    return lambda server: find(server).session.is_paused


def stalled_consumer(running: RunningServer, publisher: Client, queue: str, *, no_ack: bool = True) -> Client:
    """A consumer that has read nothing of what was delivered to it, until no more could be."""
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
        return find(server).session.is_paused and len(seen) >= LOOKS and len(set(seen[-LOOKS:])) == 1

    running.until(is_stuck)
    return client
