"""Damage pages of a store, and check how the broker and its tools react.

    python -m tests.store.page_damage FOLDER SEED COUNT

FOLDER is new. In each case a bit, an octet or all octets of one page change, or another page is in its place. `verify`
reports it, `repair` makes a store of what is left and keeps the damaged file, and neither it nor the original ever
delivers what was not published. A broker that meets the page ends, and does not start again before the repair. Prints
the numbers of cases by what a broker did. Each case has a process of its own; `case` names the last one.
"""

from __future__ import annotations

import logging
import os
import random
import re
import shutil
import struct
import sys
from collections import Counter
from pathlib import Path

import pytest

from amqp_broker.broker.durability.journal import JournalBroken
from amqp_broker.store import pages
from amqp_broker.store.environment import DATA_FILE, LOCK_FILE, TABLES, Environment, StoreError
from amqp_broker.store.journal import LmdbJournal
from amqp_broker.store.repair import repair
from amqp_broker.store.verify import verify
from tests.broker_parts import bind, new_broker, new_exchange, new_message, new_queue
from tests.store.flips import KINDS, delivered
from tests.store.stores import PAGE_BYTES, commit

Delivered = set[tuple[str, str, bytes]]
MESSAGES = 100
# Messages on one leaf: the queues of `fill` have at most 60, the stream all of its own.
LEAF_MESSAGES_MAX = 100
DAMAGES = ("head", "place", "node", "node", "zero", "zero page", "other page")


def fill(folder: Path, messages: int = MESSAGES) -> None:
    """Write a store whose trees have branches, with small messages and some of several pages."""
    environment = Environment(folder)
    journal = LmdbJournal(environment)
    vhost = new_broker(journal).vhosts["/"]
    exchange = new_exchange(vhost, "events", is_durable=True)
    for kind in KINDS:
        queue = new_queue(vhost, kind, is_durable=True, arguments={"x-queue-type": kind})
        for number in range(40):
            bind(exchange, queue, vhost, f"key {number}")
        for number in range(messages):
            body = f"{kind} {number} ".encode() * (number % 40 + 1 if number % 47 else 700)
            queue.push(new_message(body, kind, delivery_mode=2))
            if number % 10 == 9:
                commit(environment, journal)
    environment.close()


def pages_in_use(path: Path) -> list[int]:
    """Return the numbers of pages that a whole store uses; of a value on several pages only the first."""
    with path.open("rb", buffering=0) as file:
        walk = pages._Walk(file, pages.read_meta(file), path.stat().st_size // PAGE_BYTES, None)
        walk.run(TABLES, ())
        return [0, 1, *(number for number, is_used in enumerate(walk._used) if is_used)]


def damaged(octets: bytes, used: list[int], chance: random.Random) -> tuple[str, bytes]:
    """Return a description of the damage, and the octets with it."""
    number, kind = chance.choice(used), chance.choice(DAMAGES)
    start = number * PAGE_BYTES
    page = bytearray(octets[start : start + PAGE_BYTES])
    _, _, flags, lower, _ = pages.PAGE_HEAD.unpack_from(page)
    at = chance.randrange(pages.META_BYTES if number < 2 else pages.PAGE_HEAD.size)
    if kind == "other page":
        other = chance.choice(used) * PAGE_BYTES
        page = bytearray(octets[other : other + PAGE_BYTES])
    elif kind == "zero page":
        page = bytearray(PAGE_BYTES)
    elif flags == pages.OVERFLOW:
        page[at] ^= 1 << chance.randrange(8)
    else:
        if kind != "head" and flags in (pages.LEAF, pages.BRANCH):
            place = pages.PAGE_HEAD.size + 2 * chance.randrange((lower - pages.PAGE_HEAD.size) // 2)
            at = place + chance.randrange(2)
            if kind != "place":
                at = min(int(struct.unpack_from("=H", page, place)[0]) + chance.randrange(24), PAGE_BYTES - 1)
        page[at] = 0 if kind == "zero" else page[at] ^ 1 << chance.randrange(8)
    return f"{kind} of page {number} at {at}", octets[:start] + bytes(page) + octets[start + PAGE_BYTES :]


def outcome_of_a_broker(folder: Path, whole: Delivered) -> str:
    """Return what became of a broker that starts on a damaged store and delivers everything."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        # LMDB names its failed assertions there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            os.write(writing, _what_is_delivered(folder, whole).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        text = told.read()
    _, status = os.waitpid(child, 0)
    return text or f"ended by signal {os.WTERMSIG(status)}"


def _what_is_delivered(folder: Path, whole: Delivered) -> str:
    try:
        found = delivered(folder)
    except StoreError:
        return "refused"
    except JournalBroken:
        return "ended with a sentence"
    if not found <= whole:
        return "a changed message was delivered"
    return "all delivered" if found == whole else "less delivered"


def check_case(folder: Path, octets: bytes, whole: Delivered) -> str:
    """Return what became of a broker. Raise AssertionError if anything is not as it should be."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / DATA_FILE).write_bytes(octets)
    outcome = outcome_of_a_broker(folder, whole)
    assert outcome != "a changed message was delivered"
    (folder / DATA_FILE).write_bytes(octets)
    try:
        problems = verify(folder).problems
    except StoreError as error:
        problems = [str(error)]
    if not problems:
        assert delivered(folder) == whole, "verify has overlooked a loss"
        return "nothing damaged"
    (folder / LOCK_FILE).write_text("1\n", "utf-8")
    if "messages that cannot be read" not in problems[0]:
        with pytest.raises(StoreError, match=r"store repair|has format|has an older format"):
            Environment(folder)
    try:
        result = repair(folder)
    except StoreError as error:
        if not re.search("both of its meta pages are damaged|has format", str(error)):
            raise
        return "beyond repair"
    assert result.changes, problems
    if result.replaced is not None:
        assert result.replaced.read_bytes() == octets
    assert verify(folder).problems == []
    kept = delivered(folder)
    assert kept <= whole, "a changed message was delivered after the repair"
    # The messages of a queue whose definition is lost are in the copy.
    if not any(" definitions cannot be read" in change for change in result.changes):
        assert len(kept) >= len(whole) - LEAF_MESSAGES_MAX, (len(kept), result.changes)
    return outcome


def run(folder: Path, seed: int, count: int) -> Counter[str]:
    logging.disable()
    fill(folder / "whole")
    used, octets = pages_in_use(folder / "whole" / DATA_FILE), (folder / "whole" / DATA_FILE).read_bytes()
    whole = delivered(folder / "whole")
    assert len(whole) == MESSAGES * len(KINDS)
    chance, outcomes = random.Random(seed), Counter[str]()
    for number in range(count):
        what, changed = damaged(octets, used, chance)
        (folder / "case").write_text(f"case {number}: {what}", "utf-8")
        if changed != octets:
            outcomes[check_case(folder / "copy", changed, whole)] += 1
    return outcomes


if __name__ == "__main__":
    print(dict(run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
