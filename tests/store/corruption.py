"""Damage a store in many ways, and check that each time it is read or refused without a crash.

    python -m tests.store.corruption FOLDER SEED COUNT

FOLDER has a store, which is destroyed. Prints the numbers of copies that were refused, that had problems, and that were
read without a finding. A crash of the interpreter is the exit code; `case` names the damage that caused it.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections import Counter
from pathlib import Path

from amqp_broker.broker.broker import Broker
from amqp_broker.settings.settings import Settings
from amqp_broker.store.environment import DATA_FILE, Environment, StoreError
from amqp_broker.store.store import Store
from amqp_broker.store.verify import verify
from tests.store.stores import PAGE_BYTES


def damaged(octets: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Return a description of the damage, and the damaged octets."""
    kind = chance.choice(("cut", "flip", "flip", "flip head", "flip head", "zero page", "other page"))
    if kind == "cut":
        end = chance.randrange(len(octets))
        return f"cut at {end}", octets[:end]
    page = chance.randrange(len(octets) // PAGE_BYTES) * PAGE_BYTES
    if kind == "zero page":
        return f"zeros at {page}", octets[:page] + bytes(PAGE_BYTES) + octets[page + PAGE_BYTES :]
    if kind == "other page":
        other = chance.randrange(len(octets) // PAGE_BYTES) * PAGE_BYTES
        return f"page {other} at {page}", octets[:page] + octets[other : other + PAGE_BYTES] + octets[
            page + PAGE_BYTES :
        ]
    at = page + chance.randrange(200 if kind == "flip head" else PAGE_BYTES)
    changed = octets[at] ^ (1 << chance.randrange(8))
    return f"flipped at {at}", octets[:at] + bytes([changed]) + octets[at + 1 :]


def outcome(folder: Path) -> str:
    """Return the outcomes of a broker and of `store verify` on a folder."""
    try:
        Environment(folder).close()
    except StoreError:
        return "refused"
    try:
        problems = verify(folder).problems
    except StoreError:
        return "refused by verify"
    if problems:
        return "problems"
    # Nothing is wrong with it, so a broker must be able to start on it.
    store = Store(folder)
    store.recover(Broker(Settings(), bytes, store.journal))
    store.close()
    return "read"


def run(folder: Path, seed: int, count: int) -> Counter[str]:
    octets = (folder / DATA_FILE).read_bytes()
    chance = random.Random(seed)
    outcomes: Counter[str] = Counter()
    for _ in range(count):
        what, changed = damaged(octets, chance)
        (folder / "case").write_text(what, "utf-8")
        copy = folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        (copy / DATA_FILE).write_bytes(changed)
        outcomes[outcome(copy)] += 1
    return outcomes


if __name__ == "__main__":
    print(dict(run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
