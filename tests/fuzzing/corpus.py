"""The kept inputs of a target: a line each in `corpus/NAME.txt`, escaped as in Python's literals.

An input is kept if it adds a jump in the code to those that the others reach. They are the start of the next run, and
`make test` plays all of them.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from tests.fuzzing.target import Failure, Target, attempt

FOLDER = Path(__file__).parent / "corpus"
PACKAGE = str(Path(__file__).parents[2] / "amqp_broker")
FILE_BYTES_MAX = 50_000
# Each input counts as larger by so much, so that few are kept.
OVERHEAD_BYTES = 50

# A file, and the numbers of two lines of which one is executed after the other.
Jump = tuple[str, int, int]


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.txt"


def read(name: str) -> list[bytes]:
    """Return the kept inputs of a target."""
    path = path_of(name)
    return [unescaped(line) for line in path.read_text("ascii").splitlines()] if path.exists() else []


def write(name: str, inputs: Iterable[bytes]) -> None:
    path_of(name).write_text("".join(f"{escaped(data)}\n" for data in inputs), "ascii")


def escaped(data: bytes) -> str:
    return data.decode("latin-1").encode("unicode_escape").decode("ascii")


def unescaped(line: str) -> bytes:
    return line.encode("ascii").decode("unicode_escape").encode("latin-1")


def jumps(target: Target, data: bytes) -> set[Jump]:
    """Return the jumps of the broker's code for an input. Raise Failure."""
    found: set[Jump] = set()

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE):
            return None
        last = 0

        def follow(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal last
            if event == "line":
                found.add((name, last, frame.f_lineno))
                last = frame.f_lineno
            return follow

        return follow

    former = sys.gettrace()
    sys.settrace(enter)
    try:
        attempt(target, data)
    finally:
        sys.settrace(former)
    return found


def minimised(target: Target, inputs: Iterable[bytes], bytes_max: int = FILE_BYTES_MAX) -> list[bytes]:
    """Return inputs that together reach what all do.

    Those that add most for their size come first, until the file has `bytes_max`.
    """
    reached: dict[bytes, set[Jump]] = {}
    for data in sorted(set(inputs), key=lambda data: (len(data), data)):
        with contextlib.suppress(Failure):
            reached[data] = jumps(target, data)
    kept: list[bytes] = []
    known: set[Jump] = set()
    left = bytes_max
    while reached:
        best = max(reached, key=lambda data: len(reached[data] - known) / (len(data) + OVERHEAD_BYTES))
        found, size = reached.pop(best), len(escaped(best)) + 1
        if found <= known:
            break
        if size <= left:
            left -= size
            known |= found
            kept.append(best)
    return sorted(kept, key=lambda data: (len(data), data))
