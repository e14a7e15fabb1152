from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyspark_amqp.delivery_run import Run, between, singles, total_count, total_size


def run(tag: int, bodies: list[bytes], offset: int | None = None) -> Run:
    return Run(tag, False, b"exchange", b"key", b"header", bodies, offset)


def test_a_part_has_its_own_tag_and_offset() -> None:
    whole = run(5, [b"a", b"bc", b"d"], 90)
    assert whole.part(1, 3) == run(6, [b"bc", b"d"], 91)
    assert run(5, [b"a", b"bc"]).part(1, 2) == run(6, [b"bc"])
    assert whole.part(-1, 9) is whole
    assert (whole.count, whole.last_tag, whole.size) == (3, 7, 4 + 3 * len(b"header"))


@given(st.lists(st.integers(1, 4), max_size=6), st.integers(-2, 30), st.integers(-2, 30))
def test_the_deliveries_between_two_indices_are_those_of_a_flat_list(counts: list[int], start: int, end: int) -> None:
    runs: list[Run] = []
    for count in counts:
        first = total_count(runs)
        runs.append(run(first, [b"%d" % number for number in range(first, first + count)]))
    flat = [one for part in runs for one in singles(part)]
    assert total_size(runs) == sum(one.size for one in flat)
    found = list(between(runs, start, end))
    assert all(part.count for part in found)
    assert [one for part in found for one in singles(part)] == flat[max(start, 0) : max(end, 0)]
