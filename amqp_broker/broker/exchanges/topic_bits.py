"""Topic patterns as bits, for keys that too many patterns match halfway.

Each pattern has a bit for the place before each of its words, and one for its end. A number holds the places that the
words of a key so far lead to, in all patterns at once, so that a word of the key costs some operations of large
numbers, whatever the patterns are (the algorithm Shift-And with gaps: Navarro and Raffinot, "Flexible Pattern Matching
in Strings", 4.3 and 5.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class TopicBits(Generic[T]):
    """Patterns, each a list of words, with their values. They do not change."""

    def __init__(self, patterns: Iterable[tuple[list[str], Iterable[T]]]) -> None:
        starts: list[int] = []
        stars: list[int] = []
        hashes: list[int] = []
        places: dict[str, list[int]] = {}
        # Of each pattern, the place of its end, and its values.
        self._ends: list[tuple[int, Iterable[T]]] = []
        place = 0
        for pattern, values in patterns:
            starts.append(place)
            former = ""
            for word in pattern:
                if word == "#" == former:
                    continue  # Two mean what one does.
                former = word
                if word == "#":
                    hashes.append(place)
                elif word == "*":
                    stars.append(place)
                else:
                    places.setdefault(word, []).append(place)
                place += 1
            self._ends.append((place, values))
            place += 1
        self.size = place
        self._starts, self._stars, self._hashes = self._bits(starts), self._bits(stars), self._bits(hashes)
        # The places of each literal word.
        self._places = places

    def _bits(self, places: list[int]) -> int:
        octets = bytearray(self.size // 8 + 1)
        for place in places:
            octets[place >> 3] |= 1 << (place & 7)
        return int.from_bytes(octets, "little")

    def match(self, key: list[str]) -> set[T]:
        """Return the values of all patterns that match the words of a key."""
        stars, hashes = self._stars, self._hashes
        taking = {word: self._bits(self._places[word]) | stars for word in set(key) if word in self._places}
        reached = self._starts
        # `#` may stand for no word, and no two follow each other.
        reached |= (reached & hashes) << 1
        for word in key:
            reached = (reached & taking.get(word, stars)) << 1 | reached & hashes
            reached |= (reached & hashes) << 1
        octets = reached.to_bytes(self.size // 8 + 1, "little")
        found: set[T] = set()
        for end, values in self._ends:
            if octets[end >> 3] >> (end & 7) & 1:
                found.update(values)
        return found
