"""Actions and observations of a publisher in confirm mode."""

from __future__ import annotations

from typing import Any

from pamqp import commands

from tests.peer import Lab, Peer, publish_bytes


def publish(peer: Peer, *bodies: bytes, **options: Any) -> None:
    """Publish several messages to queue `q` in one read."""
    peer.send_bytes(b"".join(publish_bytes("q", body, **options) for body in bodies))


def confirms(peer: Peer) -> list[tuple[str, int, bool]]:
    """Return the confirms that have arrived: "Ack" or "Nack", the publish number, and multiple."""
    found = []
    peer._received += b"".join(peer.session.outbox.take())
    while peer._received:
        method, _ = peer.next()
        assert isinstance(method, (commands.Basic.Ack, commands.Basic.Nack))
        found.append((type(method).__name__, method.delivery_tag, bool(method.multiple)))
    return found


def bodies(lab: Lab) -> list[bytes]:
    """Return the bodies of the messages in queue `q`."""
    return [message.body for message in lab.vhost.queues["q"].messages()]
