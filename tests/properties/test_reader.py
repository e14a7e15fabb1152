"""Publishes that share a read, against the same publishes in a read of their own each."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.peer import Lab, publish_bytes

QUEUES = ("a", "b", "long")
PROPERTIES: tuple[dict[str, Any], ...] = ({}, {"delivery_mode": 2}, {"message_id": "1"}, {"message_id": "2"})
# Octets of a publish that may be wrong.
DAMAGES = ("channel of header", "channel of body", "end of header", "end of body")


class Publish(NamedTuple):
    """A publish. Few different values make successive ones alike, in all but one of them."""

    queue: str
    channel: int
    body: bytes
    properties: dict[str, Any]
    damage: str | None

    @property
    def octets(self) -> bytes:
        octets = bytearray(publish_bytes(self.queue, self.body, channel=self.channel, **self.properties))
        header = octets.index(0xCE) + 1
        body = octets.index(0xCE, header) + 1
        if self.damage == "channel of header":
            octets[header + 2] = 3 - self.channel
        elif self.damage == "channel of body" and body < len(octets):
            octets[body + 2] = 3 - self.channel
        elif self.damage == "end of header":
            octets[body - 1] = 0
        elif self.damage == "end of body":
            octets[-1] = 0
        return bytes(octets)


PUBLISHES = st.lists(
    st.builds(
        Publish,
        st.sampled_from(QUEUES),
        st.sampled_from((1, 1, 1, 2)),
        st.sampled_from((b"1", b"2", b"33", b"")),
        st.sampled_from(PROPERTIES),
        st.sampled_from((*[None] * 8, *DAMAGES)),
    ),
    max_size=12,
)


def published(reads: list[bytes]) -> tuple[list[tuple[str, int, bytes, Any]], bytes]:
    """Return the messages that reads have published, with queues and channels, and what the client got."""
    lab = Lab()
    peer = lab.connect()
    peer.open_channel(2)
    for queue in QUEUES:
        peer.declare(queue)
    for read in reads:
        peer.send_bytes(read)
    messages = [
        (queue, message.channel, message.body, message.properties().as_dict())
        for queue in QUEUES
        for message in lab.vhost.queues[queue].messages()
    ]
    return messages, b"".join(peer.session.outbox.take())


@given(PUBLISHES)
def test_publishes_of_one_read_are_those_of_many_reads(publishes: list[Publish]) -> None:
    reads = [publish.octets for publish in publishes]
    assert published([b"".join(reads)]) == published(reads)


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found_behind_publishes_that_are_alike(damage: str) -> None:
    alike = [Publish(queue, 1, b"1", {}, None) for queue in QUEUES]
    reads = [publish.octets for publish in (*alike, alike[0]._replace(damage=damage), *alike)]
    assert published([b"".join(reads)]) == published(reads)
