"""The octets of a connection: its session ends in the same way however they are cut. Others are served."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from random import Random

from tests import mutations
from tests.fuzzing.conversations import try_case
from tests.fuzzing.target import Target
from tests.mutations import PROTOCOL_HEADER, frames_of, streams

STREAMS = streams()


def check(data: bytes) -> None:
    if data:
        # One in eight is read octet by octet as well, which takes longer than all else.
        number = zlib.crc32(data)
        try_case([data], Random(number), by_octet=number % 8 == 0)


def pieces_of(data: bytes) -> list[bytes]:
    """Return the frames of a stream, and the protocol header before them."""
    if data.startswith(PROTOCOL_HEADER):
        return [PROTOCOL_HEADER, *frames_of(data[len(PROTOCOL_HEADER) :])]
    return frames_of(data)


def mutate(chance: Random, data: bytes) -> bytes:
    return b"".join(mutations.mutate(chance, pieces_of(data), STREAMS))


def seeds() -> Iterator[bytes]:
    for stream in STREAMS:
        yield b"".join(stream)
        for end in range(5, len(stream), 3):
            yield b"".join(stream[:end])


TARGET = Target(check, seeds, mutate, octets_max=20_000)
