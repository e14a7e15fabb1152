"""Finds the methods by which a client leaves: basic.cancel, channel.close and connection.close.

The upstream delivers nothing more after that, so octets from there on wait until both brokers have delivered the same.
"""

from __future__ import annotations

from typing import Final

from pamqp import commands

from amqp_broker.amqp.frames import METHOD_ID, PROTOCOL_HEADER
from amqp_broker.amqp.message import FRAME_METHOD
from amqp_broker.compare.method_reader import FrameSplitter, Unreadable

_LEAVING: Final = frozenset(
    METHOD_ID.pack(method.index)
    for method in (commands.Basic.Cancel, commands.Channel.Close, commands.Connection.Close)
)


class Leaving:
    """Follows the octets that a client sends."""

    def __init__(self) -> None:
        self._frames = FrameSplitter()
        self._frames.frame_max = 1 << 31
        self._header_bytes_left = len(PROTOCOL_HEADER)
        # Octets so far, and those of whole frames.
        self._octets = self._framed_octets = len(PROTOCOL_HEADER)
        self._is_readable = True

    def places(self, data: bytes) -> list[int]:
        """Return where such methods begin in the next octets, in order; 0 for one that began earlier."""
        skipped = min(self._header_bytes_left, len(data))
        self._header_bytes_left -= skipped
        if not self._is_readable or skipped == len(data):
            return []
        before = self._octets - skipped
        self._octets += len(data) - skipped
        places: list[int] = []
        try:
            for frame in self._frames.cut(data[skipped:]):
                if frame.kind == FRAME_METHOD and frame.payload[:4] in _LEAVING:
                    places.append(max(0, self._framed_octets - before))
                self._framed_octets += len(frame.octets)
        except Unreadable:
            self._is_readable = False
        return places
