"""Shapes of property lists. The lists of an application differ in values, and in the lengths of some strings.

A list of a known shape is recognised by comparing its other octets with those of a list that was scanned: at once if
its strings have known lengths, or piece by piece if they may have any.
"""

from __future__ import annotations

from typing import Final

from amqp_broker.amqp.header_sorter import Sorter, String
from amqp_broker.amqp.property_list import UNREADABLE, Layout, Traits, are_finite, scan, traits_of

# A larger list is scanned each time.
SHAPE_BYTES_MAX: Final = 4096
# Shapes of one session: octets of their lists, and their number for lists with the same properties, and
# the same size where that is known.
SHAPES_BYTES_MAX: Final = 64 * 1024
SHAPES_OF_FLAGS_MAX: Final = 16
# Shapes of lists that differ in the lengths of strings. Behind them, one shape stands for all other lengths; it costs
# more to recognise and to sort.
LENGTHS_MAX: Final = 16
# Lists in a row without a known shape; after them, one of this number is learnt.
_MISSES_MAX: Final = 32


class _Segment:
    """Octets of a list that have a fixed size, and are followed by a string of any length.

    Lists are equal in all octets that `mask` selects. `length_bytes` is the size of the string's length, 0 at the end.
    The table's size is at `table_at` in the segment, or not in it (-1). `floats` are the spans of floating-point
    numbers in the segment.
    """

    __slots__ = ("floats", "is_in_table", "length_bytes", "mask", "octets", "size", "table_at")

    def __init__(
        self,
        data: bytes,
        mask: bytes,
        length_bytes: int,
        is_in_table: bool,
        table_at: int,
        floats: list[tuple[int, int]],
    ) -> None:
        self.floats = floats
        self.size = len(data)
        self.mask = int.from_bytes(mask, "little")
        self.octets = int.from_bytes(data, "little") & self.mask
        self.length_bytes = length_bytes
        self.is_in_table = is_in_table
        self.table_at = table_at


class _RigidShape:
    """Property lists that are laid out alike and have strings of the same lengths, and their traits."""

    __slots__ = ("bytes", "floats", "key", "lengths", "mask", "octets", "signature", "traits")

    def __init__(self, data: bytes, layout: Layout, traits: Traits) -> None:
        self.floats = layout.floats
        self.bytes = len(data)
        self.key = _key(data)
        self.mask = int.from_bytes(_mask(data, layout), "little")
        self.octets = int.from_bytes(data, "little") & self.mask
        self.traits = traits
        self.signature = _signature(data, layout)
        self.lengths = _lengths(layout)


class _ElasticShape:
    """Property lists that are laid out alike but for the lengths of some strings, and their traits."""

    __slots__ = ("_elastic", "_rest_bytes", "_segments", "bytes", "lengths", "signature", "traits")

    def __init__(self, data: bytes, layout: Layout, traits: Traits, alike: list[_RigidShape]) -> None:
        self.bytes = len(data)
        self.traits = traits
        self.signature = alike[0].signature
        self.lengths = _lengths(layout)
        self._elastic: set[int] = set()
        for shape in alike:
            self._elastic.update(_different(shape.lengths, self.lengths))
        self._divide(data, layout)

    def stretch(self, data: bytes, layout: Layout) -> None:
        """Let strings that are of another length in this list be of any length."""
        lengths = _lengths(layout)
        self._elastic.update(_different(lengths, self.lengths))
        self.lengths = lengths
        self._divide(data, layout)

    def _strings(self, layout: Layout) -> list[String]:
        return [string for number, string in enumerate(layout.strings) if number in self._elastic]

    def _divide(self, data: bytes, layout: Layout) -> None:
        mask, at = _elastic_mask(data, layout), 0
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
        if self.traits.sorter is not None and layout.entries is not None:
            self.traits.sorter = Sorter(layout.entries, self._strings(layout))

    def _add(
        self, data: bytes, mask: bytes, start: int, end: int, length_bytes: int, is_in_table: bool, layout: Layout
    ) -> None:
        table_at = layout.table_at - start if layout.entries and start <= layout.table_at < end else -1
        floats = [(first - start, last - start) for first, last in layout.floats if start <= first < end]
        self._segments.append(_Segment(data[start:end], mask[start:end], length_bytes, is_in_table, table_at, floats))

    def has(self, data: bytes) -> bool:
        """Return whether a property list has this shape."""
        at = 0
        size = len(data)
        rest_bytes = -1
        for segment in self._segments:
            end = at + segment.size
            octets = data[at:end]
            if int.from_bytes(octets, "little") & segment.mask != segment.octets:
                return False
            if segment.floats and not are_finite(octets, segment.floats):
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


def _key(data: bytes) -> int:
    """Return the size and the property flags of a list of at least two octets."""
    return len(data) << 16 | data[0] << 8 | data[1]


def _mask(data: bytes, layout: Layout) -> bytes:
    """Return 0xFF for octets that lists of this layout and size have in common, and 0 for others."""
    mask = bytearray(b"\xff" * len(data))
    for start, end in layout.values:
        mask[start:end] = bytes(end - start)
    for at in layout.booleans:
        mask[at] = 0xFE
    return bytes(mask)


def _elastic_mask(data: bytes, layout: Layout) -> bytes:
    """Return the mask for strings of any length. It leaves out the size of the table, which depends on them."""
    mask, at = _mask(data, layout), layout.table_at
    return mask[:at] + bytes(4) + mask[at + 4 :] if layout.entries else mask


def _signature(data: bytes, layout: Layout) -> bytes:
    """Return what lists of a layout have in common, whatever the lengths of their strings."""
    masked = bytes([octet & mask for octet, mask in zip(data, _elastic_mask(data, layout), strict=True)])
    pieces, at = [], 0
    for start, _, end in layout.strings:
        pieces.append(masked[at:start])
        at = end
    pieces.append(masked[at:])
    return b"".join(pieces)


def _lengths(layout: Layout) -> list[int]:
    return [end - start for start, _, end in layout.strings]


def _different(lengths: list[int], others: list[int]) -> list[int]:
    """Return the numbers of the strings whose lengths are different."""
    return [number for number, length in enumerate(lengths) if length != others[number]]


class PropertyShapes:
    """The shapes of property lists that a connection has sent. Their number and octets are bounded."""

    __slots__ = ("_alike", "_bytes", "_elastic", "_misses", "_rigid", "sorts")

    def __init__(self, sorts: bool) -> None:
        self.sorts = sorts
        # By size and flags.
        self._rigid: dict[int, list[_RigidShape]] = {}
        # By signature.
        self._alike: dict[bytes, list[_RigidShape]] = {}
        # By flags.
        self._elastic: dict[int, list[_ElasticShape]] = {}
        self._bytes = 0
        self._misses = 0

    @property
    def size_bytes(self) -> int:
        """Octets of the lists whose shapes are kept."""
        return self._bytes

    def find(self, data: bytes) -> Traits | None:
        """Return the traits of a property list of a known shape."""
        size = len(data)
        if size < 2:
            return None
        flags = data[0] << 8 | data[1]
        rigid = self._rigid.get(size << 16 | flags)
        if rigid is not None:
            octets = int.from_bytes(data, "little")
            for shape in rigid:
                if octets & shape.mask == shape.octets and (not shape.floats or are_finite(data, shape.floats)):
                    self._misses = 0
                    return shape.traits
        elastic = self._elastic.get(flags)
        if elastic is not None:
            for stretched in elastic:
                if stretched.has(data):
                    self._misses = 0
                    return stretched.traits
        return None

    def learn(self, data: bytes) -> Traits:
        """Return the traits of a list of another shape, and keep the shape. Raise MalformedProperties.

        Return UNREADABLE for a list with a number that is not finite.
        """
        layout = scan(data)
        if layout.floats and not are_finite(data, layout.floats):
            return UNREADABLE
        traits = traits_of(layout, self.sorts)
        self._misses += 1
        is_changing = self._misses > _MISSES_MAX and self._misses % _MISSES_MAX
        if len(data) <= SHAPE_BYTES_MAX and not is_changing:
            self._keep(_RigidShape(data, layout, traits), data, layout)
        return traits

    def _keep(self, shape: _RigidShape, data: bytes, layout: Layout) -> None:
        if self._bytes + shape.bytes > SHAPES_BYTES_MAX:
            self._rigid.clear()
            self._alike.clear()
            self._elastic.clear()
            self._bytes = 0
        elastic = self._elastic.setdefault(shape.key & 0xFFFF, [])
        for stretched in elastic:
            if stretched.signature == shape.signature:
                stretched.stretch(data, layout)
                return
        alike = self._alike.setdefault(shape.signature, [])
        if len(alike) < LENGTHS_MAX:
            rigid = self._rigid.setdefault(shape.key, [])
            if len(rigid) == SHAPES_OF_FLAGS_MAX:
                self._forget(rigid[0])
            rigid.append(shape)
            alike.append(shape)
        else:
            traits = traits_of(layout, self.sorts)
            if len(elastic) == SHAPES_OF_FLAGS_MAX:
                self._bytes -= elastic.pop(0).bytes
            elastic.append(_ElasticShape(data, layout, traits, alike))
        self._bytes += shape.bytes

    def _forget(self, shape: _RigidShape) -> None:
        self._rigid[shape.key].remove(shape)
        alike = self._alike[shape.signature]
        alike.remove(shape)
        if not alike:
            del self._alike[shape.signature]
        self._bytes -= shape.bytes
