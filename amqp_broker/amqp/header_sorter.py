"""Sorts the header keys of a content by moving its octets, as RabbitMQ 4 delivers them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final

from amqp_broker.amqp.message import HEADER_START_BYTES

# Key, start and end of a header in a property list.
Entry = tuple[bytes, int, int]
# A string in a property list: the place of its length, the size of that (1 or 4 octets), and the end of the string.
String = tuple[int, int, int]

_NOTHING: Final = slice(0, 0)


class _Segment:
    """Octets of a content that have a fixed size, and are followed by a string of any length."""

    __slots__ = ("cut", "length_bytes", "size")

    def __init__(self, size: int, slices: list[slice], length_bytes: int) -> None:
        self.size = size
        # Two empty pieces first: the getter of a single slice would not return a tuple.
        self.cut: Callable[[bytes], tuple[bytes, ...]] = itemgetter(_NOTHING, _NOTHING, *slices)
        self.length_bytes = length_bytes


class Sorter:
    """Sorts contents that are laid out alike: `entries` are the headers, `elastic` the strings of any length."""

    __slots__ = ("_arrange", "_cut", "_segments")

    def __init__(self, entries: Sequence[Entry], elastic: Sequence[String]) -> None:
        spans = [(0, HEADER_START_BYTES + entries[0][1])]
        for _, start, end in sorted(entries):
            first, last = spans[-1]
            if last == HEADER_START_BYTES + start:
                # Headers that stay together are moved together.
                spans[-1] = first, HEADER_START_BYTES + end
            else:
                spans.append((HEADER_START_BYTES + start, HEADER_START_BYTES + end))
        end = HEADER_START_BYTES + entries[-1][2]
        # For contents without elastic strings, their pieces in the new order.
        self._cut: Callable[[bytes], tuple[bytes, ...]] = itemgetter(
            *[slice(*span) for span in spans], slice(end, None)
        )
        self._segments: list[_Segment] = []
        # Puts the pieces of all segments and the strings between them into the new order.
        self._arrange: Callable[[list[bytes]], tuple[bytes, ...]] | None = None
        if elastic:
            self._divide(spans, end, [one for one in elastic if HEADER_START_BYTES + one[0] < end])

    def _divide(self, spans: list[tuple[int, int]], end: int, elastic: list[String]) -> None:
        """Prepare for strings of other lengths within the first `end` octets."""
        starts, slices = [0], list[list[slice]]([[]])
        for _, _, stop in elastic:
            starts.append(HEADER_START_BYTES + stop)
            slices.append([])
        ends = [HEADER_START_BYTES + at for at, _, _ in elastic] + [end]
        places: list[tuple[int, int]] = []
        for first, last in spans:
            for number, (start, stop) in enumerate(zip(starts, ends, strict=True)):
                low, high = max(first, start), min(last, stop)
                if low < high:
                    slices[number].append(slice(low - start, high - start))
                    places.append((number, len(slices[number]) + 1))
                if number < len(elastic) and first <= stop < last:
                    places.append((number, -1))
        # The index of the first piece of each segment in the list of all.
        firsts = [0]
        for pieces in slices:
            firsts.append(firsts[-1] + len(pieces) + 3)
        order = [firsts[number + 1] - 1 if index < 0 else firsts[number] + index for number, index in places]
        self._arrange = itemgetter(*order, -1)
        lengths = [length_bytes for _, length_bytes, _ in elastic] + [0]
        self._segments = [
            _Segment(stop - start, pieces, length_bytes)
            for start, stop, pieces, length_bytes in zip(starts, ends, slices, lengths, strict=True)
        ]

    def sort(self, content: bytes) -> bytes:
        """Return the content, header frame and bodies, with the header keys sorted."""
        arrange = self._arrange
        if arrange is None:
            return b"".join(self._cut(content))
        pieces: list[bytes] = []
        at = 0
        for segment in self._segments:
            end = at + segment.size
            pieces.extend(segment.cut(content[at:end]))
            if segment.length_bytes == 1:
                at = end + 1 + content[end]
            elif segment.length_bytes == 4:
                at = end + 4 + int.from_bytes(content[end : end + 4], "big")
            else:
                at = len(content)
            pieces.append(content[end:at])
        return b"".join(arrange(pieces))
