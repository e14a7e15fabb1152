"""Messages in a queue before a test begins."""

from __future__ import annotations

from tests.peer import Peer


def fill(peer: Peer, *bodies: bytes, queue: str = "q") -> None:
    for body in bodies:
        peer.publish(queue, body)
