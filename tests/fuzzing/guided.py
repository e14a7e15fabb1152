"""Fuzzing guided by coverage, in a process of its own: `python -m tests.fuzzing.guided TARGET FOLDER [OPTION…]`.

atheris instruments what the target imports, and libFuzzer, whose options follow, keeps the inputs in FOLDER that reach
something new. A failure ends the process with exit code 1, and its input is the file `failure` beside FOLDER.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from random import Random

import atheris

from tests.fuzzing.target import Failure, attempt, load, silence

# Of the mutations of a target that has its own, one in this number changes octets.
PLAIN_MUTATIONS = 4


def fuzz(name: str, folder: Path, options: list[str], planted: str = "") -> None:
    """Feed a target until libFuzzer has had enough, and end the process."""
    with atheris.instrument_imports(include=["amqp_broker", "tests.fuzzing.planted"]):
        target = load(name)
        if planted:
            from tests.fuzzing.planted import FAULTS

            FAULTS[planted].plant()
    silence()

    def feed(data: bytes) -> None:
        try:
            attempt(target, data)
        except Failure as failure:
            (folder.parent / "failure").write_bytes(data)
            traceback.print_exception(failure)
            sys.stderr.flush()
            # libFuzzer would go on to describe the process.
            os._exit(1)

    own = target.mutate

    def mutate(data: bytes, size_max: int, seed: int) -> bytes:
        assert own is not None
        chance = Random(seed)
        if not data or chance.randrange(PLAIN_MUTATIONS) == 0:
            return bytes(atheris.Mutate(data, size_max))
        return own(chance, data)[:size_max]

    arguments = [sys.argv[0], str(folder), f"-max_len={target.octets_max}", *options]
    if target.words:
        dictionary = folder.parent / "words"
        dictionary.write_text("".join(f'"{quoted(word)}"\n' for word in target.words), "ascii")
        arguments.append(f"-dict={dictionary}")
    if own is None:
        atheris.Setup(arguments, feed)
    else:
        atheris.Setup(arguments, feed, custom_mutator=mutate)
    atheris.Fuzz()


def quoted(word: str) -> str:
    """Return a word as libFuzzer's dictionaries have it."""
    return "".join(
        chr(octet) if 32 <= octet < 127 and octet not in b'"\\' else f"\\x{octet:02x}" for octet in word.encode()
    )


if __name__ == "__main__":
    planted = sys.argv[3].removeprefix("planted=") if sys.argv[3:] and sys.argv[3].startswith("planted=") else ""
    fuzz(sys.argv[1], Path(sys.argv[2]), sys.argv[4 if planted else 3 :], planted)
