"""Shapes of property lists. The lists of an application differ in values, and in the lengths of some strings.

A list of a known shape is recognised by comparing its other octets with those of a list that was scanned.
"""

from __future__ import annotations

from typing import Final

from amqp_broker.amqp.header_sorter import Sorter, String
from amqp_broker.amqp.property_list import Layout, Traits, scan, traits_of

# A larger list is scanned each time.
SHAPE_BYTES_MAX: Final = 4096
# Shapes of one session: octets of their lists, and their number for lists with the same properties.
SHAPES_BYTES_MAX: Final = 64 * 1024
SHAPES_OF_FLAGS_MAX: Final = 16
# Lists in a row without a known shape; after them, one of this number is learnt.
_MISSES_MAX: Final = 32


class _Segment:
    """Octets of a list that have a fixed size, and are followed by a string of any length.

    Lists are equal in all octets that `mask` selects. `length_bytes` is the size of the string's length, 0 at the end.
    The table's size is at `table_at` in the segment, or not in it (-1).
    """

    __slots__ = ("is_in_table", "length_bytes", "mask", "octets", "size", "table_at")

    def __init__(self, data: bytes, mask: bytes, length_bytes: int, is_in_table: bool, table_at: int) -> None:
        self.size = len(data)
        self.mask = int.from_bytes(mask, "little")
        self.octets = int.from_bytes(data, "little") & self.mask
        self.length_bytes = length_bytes
        self.is_in_table = is_in_table
        self.table_at = table_at


class _Shape:
    """Property lists that are laid out alike, and their traits."""

    __slots__ = ("_elastic", "_rest_bytes", "_segments", "bytes", "flags", "lengths", "signature", "traits")

    def __init__(self, data: bytes, layout: Layout, traits: Traits) -> None:
        self.bytes = len(data)
        self.flags = data[0] << 8 | data[1]
        self.traits = traits
        self.signature = _signature(data, layout)
        self.lengths = _lengths(layout)
        self._elastic: set[int] = set()
        self._divide(data, layout)

    def stretch(self, data: bytes, layout: Layout) -> None:
        """Let strings that are of another length in this list be of any length."""
        lengths = _lengths(layout)
        self._elastic.update(number for number, length in enumerate(lengths) if length != self.lengths[number])
        self._divide(data, layout)
        self.lengths = lengths
        if self.traits.sorter is not None and layout.entries is not None:
            self.traits.sorter = Sorter(layout.entries, self._strings(layout))

    def _strings(self, layout: Layout) -> list[String]:
        return [string for number, string in enumerate(layout.strings) if number in self._elastic]

    def _divide(self, data: bytes, layout: Layout) -> None:
        mask, at = _mask(data, layout), 0
        table_end = layout.entries[-1][2] if layout.entries else 0
        # Size of the table without the elastic strings in it.
        self._rest_bytes = table_end - layout.table_at - 4 if layout.entries else -1
        self._segments: list[_Segment] = []
        for start, length_bytes, end in self._strings(layout):
            is_in_table = layout.table_at < start < table_end
            if is_in_table:
                self._rest_bytes -= end - start - length_bytes
            self._add(data, mask, at, start, length_bytes, is_in_table, layout)
            at = end
        self._add(data, mask, at, len(data), 0, False, layout)

    def _add(
        self, data: bytes, mask: bytes, start: int, end: int, length_bytes: int, is_in_table: bool, layout: Layout
    ) -> None:
        table_at = layout.table_at - start if layout.entries and start <= layout.table_at < end else -1
        self._segments.append(_Segment(data[start:end], mask[start:end], length_bytes, is_in_table, table_at))

    def has(self, data: bytes) -> bool:
        """Return whether a property list has this shape."""
        at = 0
        size = len(data)
        rest_bytes = -1
        for segment in self._segments:
            end = at + segment.size
            if int.from_bytes(data[at:end], "little") & segment.mask != segment.octets:
                return False
            if segment.table_at >= 0:
                at += segment.table_at
                rest_bytes += 1 + int.from_bytes(data[at : at + 4], "big")
            length_bytes = segment.length_bytes
            if not length_bytes:
                return end == size and rest_bytes == self._rest_bytes
            if end + length_bytes > size:
                return False
            length = data[end] if length_bytes == 1 else int.from_bytes(data[end : end + 4], "big")
            if segment.is_in_table:
                rest_bytes -= length
            at = end + length_bytes + length
        return False


def _mask(data: bytes, layout: Layout) -> bytes:
    """Return 0xFF for octets that are equal in all lists of a layout, and 0 for others."""
    mask = bytearray(b"\xff" * len(data))
    for start, end in layout.values:
        mask[start:end] = bytes(end - start)
    for at in layout.booleans:
        mask[at] = 0xFE
    if layout.entries:
        # It is compared with the sum of what is in the table.
        mask[layout.table_at : layout.table_at + 4] = bytes(4)
    return bytes(mask)


def _signature(data: bytes, layout: Layout) -> bytes:
    """Return what lists of a layout have in common, whatever the lengths of their strings."""
    masked = bytes([octet & mask for octet, mask in zip(data, _mask(data, layout), strict=True)])
    pieces, at = [], 0
    for start, _, end in layout.strings:
        pieces.append(masked[at:start])
        at = end
    pieces.append(masked[at:])
    return b"".join(pieces)


def _lengths(layout: Layout) -> list[int]:
    return [end - start for start, _, end in layout.strings]


class PropertyShapes:
    """The shapes of property lists that a connection has sent. Their number and octets are bounded."""

    __slots__ = ("_bytes", "_misses", "_shapes", "sorts")

    def __init__(self, sorts: bool) -> None:
        self.sorts = sorts
        self._shapes: dict[int, list[_Shape]] = {}
        self._bytes = 0
        self._misses = 0

    @property
    def size_bytes(self) -> int:
        """Octets of the lists whose shapes are kept."""
        return self._bytes

    def find(self, data: bytes) -> Traits | None:
        """Return the traits of a property list of a known shape."""
        if len(data) < 2:
            return None
        shapes = self._shapes.get(data[0] << 8 | data[1])
        if shapes is not None:
            for shape in shapes:
                if shape.has(data):
                    self._misses = 0
                    return shape.traits
        return None

    def learn(self, data: bytes) -> Traits:
        """Return the traits of a list of another shape, and keep its shape. Raise MalformedProperties."""
        layout = scan(data)
        traits = traits_of(layout, self.sorts)
        self._misses += 1
        is_changing = self._misses > _MISSES_MAX and self._misses % _MISSES_MAX
        if len(data) <= SHAPE_BYTES_MAX and not is_changing:
            self._keep(_Shape(data, layout, traits), data, layout)
        return traits

    def _keep(self, shape: _Shape, data: bytes, layout: Layout) -> None:
        if self._bytes + shape.bytes > SHAPES_BYTES_MAX:
            self._shapes.clear()
            self._bytes = 0
        shapes = self._shapes.setdefault(shape.flags, [])
        for other in shapes:
            if other.signature == shape.signature:
                other.stretch(data, layout)
                return
        if len(shapes) == SHAPES_OF_FLAGS_MAX:
            self._bytes -= shapes.pop(0).bytes
        shapes.append(shape)
        self._bytes += shape.bytes
