"""Gives mutated payloads to the decoders: `python -m tests.decoder_fuzz [--cases N] [--seed N]`.

A case is the payload of a method, or the property list of a message, with up to three changes. Its decoder either
refuses it with one of the decoder's own errors, or returns a value that, encoded, is decoded to the same. Exit code 1
and the payload of the first case for which neither is true.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from amqp_broker.amqp.errors import Disconnect, FrameError
from amqp_broker.amqp.message import CONTENT, FRAME_HEADER, FRAME_METHOD, MalformedProperties, Properties
from amqp_broker.amqp.methods import decode_method, encode_method
from tests.mutations import MUTATIONS, streams

CASES = 1_000_000


class Failure(Exception):
    """A decoder raised another error, or its value changed on the way through the encoder."""


class Decoder(NamedTuple):
    """`through` decodes a payload and encodes the value; `errors` are what it may raise."""

    through: Callable[[bytes], bytes]
    errors: tuple[type[Exception], ...]


METHOD = Decoder(lambda payload: encode_method(decode_method(payload)), (Disconnect, FrameError))
PROPERTIES = Decoder(lambda payload: Properties.decode(payload).encode(), (MalformedProperties,))


def payloads() -> list[tuple[Decoder, bytes]]:
    """Return the payloads of the fuzzer's streams that have a decoder, each once."""
    found: dict[tuple[Decoder, bytes], None] = {}
    for frame in (piece for stream in streams() for piece in stream):
        payload = frame[7:-1]
        if frame[0] == FRAME_METHOD:
            found[METHOD, payload] = None
        elif frame[0] == FRAME_HEADER:
            found[PROPERTIES, payload[CONTENT.size :]] = None
    return list(found)


def is_accepted(decoder: Decoder, payload: bytes) -> bool:
    """Return whether the decoder accepts a payload. Raise Failure."""
    try:
        encoded = decoder.through(payload)
    except decoder.errors:
        return False
    except Exception as error:
        raise Failure(f"{type(error).__name__}: {error}: {payload.hex()}") from error
    if (again := decoder.through(encoded)) != encoded:
        raise Failure(f"{payload.hex()} becomes {encoded.hex()} and then {again.hex()}")
    return True


def fuzz(seed: int, cases: int) -> int:
    """Try a number of cases and return how many were accepted. Raise Failure."""
    chance, bases, accepted = Random(seed), payloads(), 0
    for _ in range(cases):
        decoder, payload = chance.choice(bases)
        for _ in range(chance.choice((1, 1, 2, 3))):
            if payload:
                payload = chance.choice(MUTATIONS)(chance, payload)
        accepted += is_accepted(decoder, payload)
    return accepted


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.decoder_fuzz", description="Mutate what is decoded.")
    parser.add_argument("--cases", type=int, default=CASES, help=f"number of cases (default: {CASES})")
    parser.add_argument("--seed", type=int, default=1, help="seed (default: 1)")
    options = parser.parse_args()
    began = time.process_time()
    try:
        accepted = fuzz(options.seed, options.cases)
    except Failure as failure:
        print(f"seed {options.seed}: {failure}", file=sys.stderr)
        return 1
    duration_s = time.process_time() - began
    print(f"{options.cases} cases in {duration_s:.0f} s, {accepted} accepted, no failure")
    return 0


if __name__ == "__main__":
    sys.exit(main())
