from __future__ import annotations

import pytest

from amqp_broker.amqp.header_sorter import Sorter
from amqp_broker.amqp.message import HEADER_START_BYTES

# Two headers out of order with strings, a string before them and one behind them, as octets.
START = bytes(HEADER_START_BYTES)


def content(*, before: bytes = b"t", first: bytes = b"ff", second: bytes = b"ss", behind: bytes = b"u") -> bytes:
    table = b"\1bS\0\0\0" + bytes([len(first)]) + first + b"\1aS\0\0\0" + bytes([len(second)]) + second
    short = [bytes([len(text)]) + text for text in (before, behind)]
    return START + b"\xa0\x20" + short[0] + b"\0\0\0" + bytes([len(table)]) + table + short[1] + b"\xce and the body"


# As in `content()`: the flags take 2 octets, `before` 2, the size of the table 4.
ENTRIES = [(b"b", 8, 17), (b"a", 17, 26)]
BEFORE, FIRST, SECOND, BEHIND = (2, 1, 4), (11, 4, 17), (20, 4, 26), (26, 1, 28)


def sorted_by(sorter: Sorter, *, before: bytes = b"t", first: bytes = b"ff", second: bytes = b"ss") -> bool:
    data = content(before=before, first=first, second=second)
    b, a = (b"\1%cS\0\0\0%c%s" % (key, len(text), text) for key, text in ((b"b", first), (b"a", second)))
    assert b + a in data
    return sorter.sort(data) == data.replace(b + a, a + b)


def test_headers_at_known_places_change_their_places() -> None:
    assert sorted_by(Sorter(ENTRIES, []))


@pytest.mark.parametrize(
    "elastic", [[BEFORE], [FIRST], [SECOND], [FIRST, SECOND], [BEFORE, FIRST, SECOND], [BEFORE, FIRST, SECOND, BEHIND]]
)
def test_strings_of_any_length_move_with_their_headers(elastic: list[tuple[int, int, int]]) -> None:
    sorter = Sorter(ENTRIES, elastic)
    assert sorted_by(sorter)
    for text in (b"", b"x", b"y" * 50):
        changed = {
            name: text for name, one in (("before", BEFORE), ("first", FIRST), ("second", SECOND)) if one in elastic
        }
        assert sorted_by(sorter, **changed)


def test_octets_behind_the_headers_stay_as_they_are() -> None:
    sorter = Sorter(ENTRIES, [FIRST, BEHIND])
    data = content(first=b"longer", behind=b"another")
    assert sorter.sort(data)[-len(b"another\xce and the body") :] == b"another\xce and the body"
    assert len(sorter.sort(data)) == len(data)


def test_strings_of_any_length_may_stand_side_by_side() -> None:
    table = b"\1bt\1\1at\0"
    data = START + b"\xe0\0" + b"\2xx" + b"\1y" + b"\0\0\0\x08" + table + b"\xce and the body"
    sorter = Sorter([(b"b", 11, 15), (b"a", 15, 19)], [(2, 1, 5), (5, 1, 7)])
    assert sorter.sort(data) == data.replace(table, b"\1at\0\1bt\1")
    longer = data.replace(b"\2xx\1y", b"\0\5zzzzz")
    assert sorter.sort(longer) == longer.replace(table, b"\1at\0\1bt\1")
