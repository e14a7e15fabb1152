"""The promises made to clients, and their check.

Each has its place in the record of a disk: the length of the record. A client reads it before it asks for something,
and after it has the answer. Every image of the disk that is made at a place or later keeps what was promised there.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

from tests.torture.ledger import Copy, Number

BODY_BYTES_MAX = 3000
LARGE_BODY_BYTES_MAX = 100_000


def body_of(number: Number) -> bytes:
    """Return the body of a message, which its number decides."""
    chance = random.Random(str(number))
    size = chance.randrange(LARGE_BODY_BYTES_MAX if chance.random() < 0.02 else BODY_BYTES_MAX)
    return f"{number}:".encode() + chance.randbytes(size)


def number_in(body: bytes) -> Number | None:
    """Return the number of a message; None if its body has changed."""
    publisher, _, rest = body.partition(b":")
    number, _, _ = rest.partition(b":")
    if not number.isdigit():
        return None
    found = Number(publisher.decode(errors="replace"), int(number))
    return found if body == body_of(found) else None


class Promises:
    """The questions of clients, and the promises made to them, each with its place. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.sent: dict[Number, int] = {}
        self.confirmed: dict[Copy, int] = {}
        self.acked: dict[Copy, int] = {}
        self.settled: dict[Copy, int] = {}
        self.declared: dict[str, int] = {}
        self.deleting: dict[str, int] = {}
        self.deleted: dict[str, int] = {}

    def note(self, kind: dict[Copy, int], copies: list[Copy], place: int) -> None:
        with self._lock:
            kind.update(dict.fromkeys(copies, place))

    def at(self, place: int) -> int:
        """Return the number of messages that were confirmed at a place."""
        return sum(confirmed <= place for confirmed in self.confirmed.values())

    def broken(self, found: dict[str, list[bytes]], place: int, sure: int) -> Iterator[str]:
        """Yield sentences about promises that an image does not keep, by its queues and their bodies in order.

        The power was cut at `place`. Promises until `sure` are kept; later ones may be.
        """
        for name, declared in self.declared.items():
            if declared <= sure and self.deleting.get(name, place + 1) > place and name not in found:
                yield f"{name} was declared and is lost"
        for name, deleted in self.deleted.items():
            if deleted <= sure and name in found:
                yield f"{name} was deleted and is there"
        there: set[Copy] = set()
        for queue, bodies in found.items():
            yield from self._broken_in(queue, bodies, place, sure, there)
        for copy, confirmed in self.confirmed.items():
            if confirmed <= sure and self.acked.get(copy, place + 1) > place and copy not in there:
                yield f"{copy[0]}: {copy[1]} was confirmed and is lost"

    def _broken_in(self, queue: str, bodies: list[bytes], place: int, sure: int, there: set[Copy]) -> Iterator[str]:
        last: dict[str, int] = {}
        for body in bodies:
            number = number_in(body)
            if number is None or self.sent.get(number, place + 1) > place:
                yield f"{queue}: nobody sent {body[:40]!r}"
                continue
            copy = (queue, number)
            if copy in there:
                yield f"{queue}: {number} is there twice"
            if self.settled.get(copy, sure + 1) <= sure:
                yield f"{queue}: {number} was settled and is there"
            if last.get(number.publisher, 0) > number.number and "priority" not in queue:
                yield f"{queue}: {number} came after {last[number.publisher]}"
            last[number.publisher] = number.number
            there.add(copy)
